//! A set of tasks of one kind of a job, in order: one bit per task, so that the first one is found fast and
//! large jobs are inserted fast.

/// Tasks by their indices.
#[derive(Debug, Default)]
pub(crate) struct TaskSet {
    words: Vec<u64>,
    /// The first nonzero word; the number of words if all are zero.
    first: usize,
    count: u32,
}

impl TaskSet {
    /// Returns the set of all tasks below `count`.
    pub fn of_all(count: u32) -> TaskSet {
        let mut words = vec![u64::MAX; count.div_ceil(64) as usize];
        if let Some(last) = words.last_mut()
            && !count.is_multiple_of(64)
        {
            *last = (1 << (count % 64)) - 1;
        }
        TaskSet {
            words,
            first: 0,
            count,
        }
    }

    pub fn len(&self) -> u32 {
        self.count
    }

    pub fn contains(&self, index: u32) -> bool {
        let (word, bit) = place(index);
        self.words.get(word).is_some_and(|bits| bits & bit != 0)
    }

    pub fn insert(&mut self, index: u32) {
        let (word, bit) = place(index);
        if word >= self.words.len() {
            self.first = if self.count == 0 { word } else { self.first };
            self.words.resize(word + 1, 0);
        }
        self.count += u32::from(self.words[word] & bit == 0);
        self.words[word] |= bit;
        self.first = self.first.min(word);
    }

    pub fn remove(&mut self, index: u32) {
        let (word, bit) = place(index);
        let Some(bits) = self.words.get_mut(word).filter(|bits| **bits & bit != 0) else {
            return;
        };
        *bits &= !bit;
        self.count -= 1;
        while self.words.get(self.first) == Some(&0) {
            self.first += 1;
        }
    }

    /// Returns the tasks in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let words = self.words.iter().enumerate().skip(self.first);
        words.flat_map(|(word, &bits)| {
            let mut left = bits;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(word as u32 * 64 + bit)
            })
        })
    }
}

/// Returns the word of a task, and its bit there.
fn place(index: u32) -> (usize, u64) {
    (index as usize / 64, 1 << (index % 64))
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
            let most = random.random_range(0..300);
            let mut set = TaskSet::of_all(most);
            let mut tree = (0..most).collect::<BTreeSet<u32>>();
            for _ in 0..2_000 {
                let index = random.random_range(0..300);
                if random.random_bool(0.4) {
                    set.insert(index);
                    tree.insert(index);
                } else {
                    set.remove(index);
                    tree.remove(&index);
                }
                assert_eq!(set.contains(index), tree.contains(&index));
                assert_eq!(
                    (set.len() as usize, set.iter().next()),
                    (tree.len(), tree.first().copied())
                );
            }
            assert!(set.iter().eq(tree), "seed {seed}");
        }
    }
}
