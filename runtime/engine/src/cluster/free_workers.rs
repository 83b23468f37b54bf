//! Workers ordered by their free slots of a kind, most first, so that load spreads. A bit per worker makes
//! updates cheap: every attempt moves a worker when it starts and when it ends.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Bound;

use crate::ids::WorkerId;

/// The position of a worker in the order of offers.
pub(crate) type OfferOrder = (Reverse<u32>, WorkerId);

/// Bit sets of workers by their number of free slots; a word covers 64 consecutive ids.
#[derive(Debug, Default)]
pub(crate) struct FreeWorkers {
    levels: BTreeMap<Reverse<u32>, BTreeMap<u32, u64>>,
    count: usize,
}

impl FreeWorkers {
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn contains(&self, (free, worker): &OfferOrder) -> bool {
        let (word, bit) = place(*worker);
        self.levels
            .get(free)
            .and_then(|words| words.get(&word))
            .is_some_and(|bits| bits & bit != 0)
    }

    pub fn insert(&mut self, (free, worker): OfferOrder) {
        let (word, bit) = place(worker);
        let bits = self
            .levels
            .entry(free)
            .or_default()
            .entry(word)
            .or_default();
        self.count += usize::from(*bits & bit == 0);
        *bits |= bit;
    }

    pub fn remove(&mut self, (free, worker): &OfferOrder) {
        let (word, bit) = place(*worker);
        let Some(words) = self.levels.get_mut(free) else {
            return;
        };
        let Some(bits) = words.get_mut(&word).filter(|bits| **bits & bit != 0) else {
            return;
        };
        *bits &= !bit;
        self.count -= 1;
        if *bits == 0 {
            words.remove(&word);
            if words.is_empty() {
                self.levels.remove(free);
            }
        }
    }

    /// Returns the workers in order.
    pub fn iter(&self) -> impl Iterator<Item = OfferOrder> + '_ {
        std::iter::successors(self.next(None), |last| self.next(Some(*last)))
    }

    /// Returns the next worker in order, or the first one for `None`.
    pub fn next(&self, last: Option<OfferOrder>) -> Option<OfferOrder> {
        let mut levels = (Bound::Unbounded, Bound::Unbounded);
        if let Some((free, worker)) = last {
            let (from, bit) = place(worker);
            let words = self
                .levels
                .get(&free)
                .into_iter()
                .flat_map(|words| words.range(from..));
            let behind = |word: u32| {
                if word == from {
                    !(bit | (bit - 1))
                } else {
                    u64::MAX
                }
            };
            let mut words = words.map(|(&word, bits)| (word, bits & behind(word)));
            if let Some((word, bits)) = words.find(|(_, bits)| *bits != 0) {
                return Some((free, first_of(word, bits)));
            }
            levels.0 = Bound::Excluded(free);
        }
        let (free, words) = self.levels.range(levels).next()?;
        let (word, bits) = words.first_key_value()?;
        Some((*free, first_of(*word, *bits)))
    }
}

/// Returns the word of a worker, and its bit there.
fn place(WorkerId(number): WorkerId) -> (u32, u64) {
    (number / 64, 1 << (number % 64))
}

/// Returns the first worker of a nonzero word.
fn first_of(word: u32, bits: u64) -> WorkerId {
    WorkerId(word * 64 + bits.trailing_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_pcg::Pcg64;
    use std::collections::BTreeSet;

    #[test]
    fn contents_equal_those_of_tree() {
        for seed in 0..20 {
            let mut random = Pcg64::seed_from_u64(seed);
            let mut workers = FreeWorkers::default();
            let mut tree = BTreeSet::<OfferOrder>::new();
            for _ in 0..3_000 {
                let number = [
                    random.random_range(0..200),
                    u32::MAX - random.random_range(0..3),
                ];
                let one = (
                    Reverse(random.random_range(1..4)),
                    WorkerId(number[random.random_range(0..2)]),
                );
                assert_eq!(workers.contains(&one), tree.contains(&one));
                let behind = tree
                    .range((Bound::Excluded(one), Bound::Unbounded))
                    .next()
                    .copied();
                assert_eq!(workers.next(Some(one)), behind, "seed {seed}");
                if random.random_bool(0.5) {
                    workers.insert(one);
                    tree.insert(one);
                } else {
                    workers.remove(&one);
                    tree.remove(&one);
                }
                assert_eq!(
                    (workers.len(), workers.is_empty()),
                    (tree.len(), tree.is_empty())
                );
            }
            assert!(workers.iter().eq(tree), "seed {seed}");
        }
    }
}
