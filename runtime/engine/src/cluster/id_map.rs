//! A map by id with constant-time lookup and iteration in the order of ids. Every event looks up jobs,
//! workers and attempts many times. Hashing only determines where an entry is stored, so the iteration order
//! does not depend on history.

use std::fmt;
use std::ops::Index;

use crate::ids::{AttemptId, JobId, TaskKind, WorkerId};
use crate::sorted::SortedSet;

/// A key of the map.
pub(crate) trait Id: Copy + Ord {
    /// Returns the number of an id; distinct ids should have distinct numbers.
    fn number(self) -> u64;
}

impl Id for JobId {
    fn number(self) -> u64 {
        u64::from(self.0)
    }
}

impl Id for WorkerId {
    fn number(self) -> u64 {
        u64::from(self.0)
    }
}

impl Id for AttemptId {
    fn number(self) -> u64 {
        let kind = u64::from(self.task.kind == TaskKind::Reduce);
        let task = u64::from(self.task.job.0) << 32 | u64::from(self.task.index);
        task.wrapping_mul(4)
            ^ (u64::from(self.number) << 1 | kind).wrapping_mul(0xD6E8_FEB8_6659_FD93)
    }
}

/// A map by id that is often iterated. Its ids are numbered consecutively.
pub(crate) type OrderedIdMap<K, V> = IdMap<K, V, true>;

/// A map by id. If `ORDERED`, it keeps its ids sorted; otherwise iteration sorts them.
pub(crate) struct IdMap<K, V, const ORDERED: bool = false> {
    /// The length is a power of two and at least twice the number of entries.
    table: Vec<Slot>,
    /// The right shift that maps a product to a slot number.
    shift: u32,
    /// If ordered: the places plus one of ids with small numbers, which are not in the table. Jobs and workers
    /// are numbered consecutively.
    near: Vec<u32>,
    entries: Vec<Option<(K, V)>>,
    vacant: Vec<u32>,
    ordered: SortedSet<K>,
}

/// A slot of the table: the place of an entry, and part of its key to skip most others without comparing
/// keys.
#[derive(Clone, Copy, Default)]
struct Slot {
    /// The place of the entry plus one; zero: free.
    place: u32,
    mark: u32,
}

/// Numbers below this are near.
const NEAR: u64 = 1 << 20;

impl<K: Id, V, const ORDERED: bool> Default for IdMap<K, V, ORDERED> {
    fn default() -> Self {
        IdMap {
            table: vec![Slot::default(); 16],
            shift: 60,
            near: Vec::new(),
            entries: Vec::new(),
            vacant: Vec::new(),
            ordered: SortedSet::new(),
        }
    }
}

impl<K: Id, V, const ORDERED: bool> IdMap<K, V, ORDERED> {
    pub fn len(&self) -> usize {
        self.entries.len() - self.vacant.len()
    }

    #[inline]
    pub fn get(&self, key: &K) -> Option<&V> {
        let place = self.find(*key)?;
        self.entries[place].as_ref().map(|(_, value)| value)
    }

    #[inline]
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let place = self.find(*key)?;
        self.entries[place].as_mut().map(|(_, value)| value)
    }

    #[inline]
    pub fn contains_key(&self, key: &K) -> bool {
        self.find(*key).is_some()
    }

    /// Inserts a value and returns the previous one, if any.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        if let Some(place) = self.find(key) {
            return self.entries[place]
                .replace((key, value))
                .map(|(_, value)| value);
        }
        if (self.len() + 1) * 2 > self.table.len() {
            self.grow();
        }
        let place = self
            .vacant
            .pop()
            .map_or(self.entries.len(), |place| place as usize);
        if place == self.entries.len() {
            self.entries.push(None);
        }
        self.entries[place] = Some((key, value));
        self.enter(key, place);
        if ORDERED {
            self.ordered.insert(key);
        }
        None
    }

    pub fn remove(&mut self, key: &K) -> Option<V> {
        let place = self.find(*key)?;
        if Self::is_near(*key) {
            self.near[key.number() as usize] = 0;
        } else {
            let (slot, _) = self.look_up(*key)?;
            self.close(slot);
        }
        self.vacant.push(place as u32);
        if ORDERED {
            self.ordered.remove(key);
        }
        self.entries[place].take().map(|(_, value)| value)
    }

    /// Returns the ids in order.
    pub fn keys(&self) -> std::vec::IntoIter<K> {
        if ORDERED {
            return self.ordered.iter().copied().collect::<Vec<K>>().into_iter();
        }
        let mut keys: Vec<K> = self.entries.iter().flatten().map(|(key, _)| *key).collect();
        keys.sort_unstable();
        keys.into_iter()
    }

    /// Returns ids and values, in the order of ids.
    pub fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.keys().map(|key| (key, &self[&key]))
    }

    /// Returns the values, in the order of ids.
    pub fn values(&self) -> impl Iterator<Item = &V> + Clone {
        self.keys().map(|key| &self[&key])
    }

    /// Returns the preferred slot of a key, and its mark.
    fn slot_of(&self, key: K) -> (usize, u32) {
        // Fibonacci hashing: the high bits of a product depend on all bits.
        let product = key.number().wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((product >> self.shift) as usize, product as u32)
    }

    fn is_near(key: K) -> bool {
        ORDERED && key.number() < NEAR
    }

    /// Returns the place of a key.
    #[inline]
    fn find(&self, key: K) -> Option<usize> {
        if Self::is_near(key) {
            return (*self.near.get(key.number() as usize)? as usize).checked_sub(1);
        }
        self.look_up(key).map(|(_, place)| place)
    }

    /// Returns the slot and the place of a key in the table.
    fn look_up(&self, key: K) -> Option<(usize, usize)> {
        let mask = self.table.len() - 1;
        let (mut slot, mark) = self.slot_of(key);
        loop {
            let there = self.table[slot];
            let place = (there.place as usize).checked_sub(1)?;
            if there.mark == mark
                && self.entries[place]
                    .as_ref()
                    .is_some_and(|(other, _)| *other == key)
            {
                return Some((slot, place));
            }
            slot = (slot + 1) & mask;
        }
    }

    fn enter(&mut self, key: K, place: usize) {
        let place = u32::try_from(place + 1).expect("fewer entries than numbers");
        if Self::is_near(key) {
            let number = key.number() as usize;
            self.near.resize(self.near.len().max(number + 1), 0);
            self.near[number] = place;
            return;
        }
        let mask = self.table.len() - 1;
        let (mut slot, mark) = self.slot_of(key);
        while self.table[slot].place != 0 {
            slot = (slot + 1) & mask;
        }
        self.table[slot] = Slot { place, mark };
    }

    /// Frees a slot and moves up the entries that could no longer be found.
    fn close(&mut self, mut free: usize) {
        let mask = self.table.len() - 1;
        let mut slot = free;
        loop {
            slot = (slot + 1) & mask;
            let Some(place) = (self.table[slot].place as usize).checked_sub(1) else {
                break;
            };
            let Some((key, _)) = &self.entries[place] else {
                break;
            };
            let (home, _) = self.slot_of(*key);
            if (slot.wrapping_sub(home) & mask) >= (slot.wrapping_sub(free) & mask) {
                self.table[free] = self.table[slot];
                free = slot;
            }
        }
        self.table[free] = Slot::default();
    }

    fn grow(&mut self) {
        self.table = vec![Slot::default(); self.table.len() * 2];
        self.shift -= 1;
        for place in 0..self.entries.len() {
            if let Some((key, _)) = &self.entries[place] {
                self.enter(*key, place);
            }
        }
    }
}

impl<K: Id, V, const ORDERED: bool> Index<&K> for IdMap<K, V, ORDERED> {
    type Output = V;
    fn index(&self, key: &K) -> &V {
        self.get(key).expect("a known id")
    }
}

impl<K: Id + fmt::Debug, V: fmt::Debug, const ORDERED: bool> fmt::Debug for IdMap<K, V, ORDERED> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Id, V, const ORDERED: bool> FromIterator<(K, V)> for IdMap<K, V, ORDERED> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::default();
        for (key, value) in entries {
            map.insert(key, value);
        }
        map
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_pcg::Pcg64;
    use std::collections::BTreeMap;

    fn agrees_with_a_tree<const ORDERED: bool>(seed: u64) {
        let mut random = Pcg64::seed_from_u64(seed);
        let mut map: IdMap<JobId, u64, ORDERED> = IdMap::default();
        let mut tree = BTreeMap::new();
        for step in 0..5_000_u64 {
            let key = JobId(
                random.random_range(0..200) * if seed.is_multiple_of(2) { 64 } else { 1 << 14 },
            );
            if random.random_bool(0.5) {
                assert_eq!(
                    map.insert(key, step),
                    tree.insert(key, step),
                    "seed {seed}, step {step}"
                );
            } else {
                assert_eq!(
                    map.remove(&key),
                    tree.remove(&key),
                    "seed {seed}, step {step}"
                );
            }
            assert_eq!((map.get(&key), map.len()), (tree.get(&key), tree.len()));
        }
        assert!(
            map.iter().eq(tree.iter().map(|(key, value)| (*key, value))),
            "seed {seed}"
        );
        assert!(map.values().eq(tree.values()) && map.keys().eq(tree.keys().copied()));
        for key in tree.keys() {
            *map.get_mut(key).expect("it is there") += 1;
        }
        assert!(tree.iter().all(|(key, value)| map[key] == value + 1));
    }

    #[test]
    fn contents_equal_those_of_tree() {
        for seed in 0..20 {
            agrees_with_a_tree::<true>(seed);
            agrees_with_a_tree::<false>(seed);
        }
    }

    #[test]
    fn distinct_attempts_have_distinct_numbers() {
        let mut map: IdMap<AttemptId, u32> = IdMap::default();
        let mut ids = Vec::new();
        for job in 1..=20 {
            for index in 0..20 {
                for (kind, number) in [
                    (TaskKind::Map, 1),
                    (TaskKind::Map, 2),
                    (TaskKind::Reduce, 1),
                ] {
                    let task = crate::ids::TaskId {
                        job: JobId(job),
                        kind,
                        index,
                    };
                    ids.push(AttemptId { task, number });
                }
            }
        }
        for (value, id) in (0..).zip(&ids) {
            assert_eq!(map.insert(*id, value), None);
        }
        assert!((0..).zip(&ids).all(|(value, id)| map[id] == value));
        ids.sort_unstable();
        assert!(map.keys().eq(ids));
    }
}
