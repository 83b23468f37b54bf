//! Maps and sets in the order of their keys: sorted vectors, in blocks of bounded length. Engine and policies
//! have them for dozens of pairs of types, and each pair of `BTreeMap` compiles to ten times as much code.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, RangeInclusive};
use std::slice;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A longer block is split.
const BLOCK_MAX: usize = 64;

/// Sorts by a key; equal keys keep their order. Sorting itself is compiled once, for numbers: it is a large
/// function, and policies sort rarely.
pub fn sort_by_key<T: Clone, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    let keys: Vec<K> = items.iter().map(key).collect();
    let before = items.to_vec();
    let order = order(keys.len(), &|one, other| keys[one].cmp(&keys[other]));
    for (item, index) in items.iter_mut().zip(order) {
        item.clone_from(&before[index]);
    }
}

/// Sorts; equal items keep their order. See [`sort_by_key`].
pub fn sort_by<T: Clone>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let before = items.to_vec();
    let order = order(before.len(), &|one, other| {
        compare(&before[one], &before[other])
    });
    for (item, index) in items.iter_mut().zip(order) {
        item.clone_from(&before[index]);
    }
}

/// Returns the indexes of so many items, in order.
fn order(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|one, other| compare(*one, *other));
    order
}

/// A map in the order of its keys.
#[derive(Clone)]
pub struct SortedMap<K, V> {
    /// In order; only a sole block may be empty.
    blocks: Vec<Vec<(K, V)>>,
}

/// A set in the order of its members.
#[derive(Clone, PartialEq, Eq)]
pub struct SortedSet<T> {
    members: SortedMap<T, ()>,
}

/// Where an entry is, or would be inserted.
#[derive(Clone, Copy)]
struct Position {
    block: usize,
    index: usize,
    is_present: bool,
}

impl<K, V> SortedMap<K, V> {
    pub const fn new() -> SortedMap<K, V> {
        SortedMap { blocks: Vec::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.blocks.first().is_none_or(Vec::is_empty)
    }

    pub fn len(&self) -> usize {
        self.blocks.iter().map(Vec::len).sum()
    }

    /// Returns the entries, in order.
    pub fn iter(&self) -> Entries<'_, K, V> {
        Entries {
            front: [].iter(),
            blocks: self.blocks.iter(),
            back: [].iter(),
        }
    }

    /// Returns the keys, in order.
    pub fn keys(&self) -> Keys<'_, K, V> {
        Keys(self.iter())
    }

    /// Returns the values, in the order of their keys.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + Clone {
        self.iter().map(|(_, value)| value)
    }

    /// Returns the values, in the order of their keys.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.blocks.iter_mut().flatten().map(|(_, value)| value)
    }

    pub fn first(&self) -> Option<(&K, &V)> {
        let (key, value) = self.blocks.first()?.first()?;
        Some((key, value))
    }

    pub fn last(&self) -> Option<(&K, &V)> {
        let (key, value) = self.blocks.last()?.last()?;
        Some((key, value))
    }

    pub fn pop_first(&mut self) -> Option<(K, V)> {
        if self.is_empty() {
            return None;
        }
        Some(self.take(0, 0))
    }

    pub fn clear(&mut self) {
        self.blocks.clear();
    }

    /// Removes the entry at a place.
    fn take(&mut self, block: usize, index: usize) -> (K, V) {
        let entry = self.blocks[block].remove(index);
        if self.blocks[block].is_empty() && self.blocks.len() > 1 {
            self.blocks.remove(block);
        }
        entry
    }

    /// Inserts an entry at its place, and returns where it is then.
    fn put(&mut self, at: Position, key: K, value: V) -> &mut V {
        let Position {
            mut block,
            mut index,
            ..
        } = at;
        if self.blocks.is_empty() {
            self.blocks.push(Vec::new());
        }
        if self.blocks[block].len() == BLOCK_MAX {
            let upper = self.blocks[block].split_off(BLOCK_MAX / 2);
            self.blocks.insert(block + 1, upper);
            if index > BLOCK_MAX / 2 {
                block += 1;
                index -= BLOCK_MAX / 2;
            }
        }
        self.blocks[block].insert(index, (key, value));
        &mut self.blocks[block][index].1
    }
}

impl<K: Ord, V> SortedMap<K, V> {
    fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Position
    where
        K: Borrow<Q>,
    {
        let mut block = 0;
        if self.blocks.len() > 1 {
            let after = self
                .blocks
                .partition_point(|entries| entries[0].0.borrow() <= key);
            block = after.saturating_sub(1);
        }
        let Some(entries) = self.blocks.get(block) else {
            return Position {
                block,
                index: 0,
                is_present: false,
            };
        };
        let index = entries.partition_point(|(known, _)| known.borrow() < key);
        let is_present = entries
            .get(index)
            .is_some_and(|(known, _)| known.borrow() == key);
        Position {
            block,
            index,
            is_present,
        }
    }

    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key).is_present
    }

    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let at = self.find(key);
        if !at.is_present {
            return None;
        }
        Some(&self.blocks[at.block][at.index].1)
    }

    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let at = self.find(key);
        if !at.is_present {
            return None;
        }
        Some(&mut self.blocks[at.block][at.index].1)
    }

    /// Inserts a value and returns the previous one, if any.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let at = self.find(&key);
        if at.is_present {
            let known = &mut self.blocks[at.block][at.index].1;
            return Some(std::mem::replace(known, value));
        }
        self.put(at, key, value);
        None
    }

    /// Returns the value of a key, after it has inserted the default value if there was none.
    pub fn get_or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        self.get_or_insert_with(key, V::default)
    }

    /// Returns the value of a key, after it has inserted one if there was none.
    pub fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let at = self.find(&key);
        if at.is_present {
            return &mut self.blocks[at.block][at.index].1;
        }
        self.put(at, key, make())
    }

    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let at = self.find(key);
        if !at.is_present {
            return None;
        }
        Some(self.take(at.block, at.index).1)
    }

    /// Returns the entries from one key to another, including both, in order.
    pub fn range(&self, keys: RangeInclusive<K>) -> Entries<'_, K, V> {
        let first = self.find(keys.start());
        let last = self.find(keys.end());
        let end = last.index + usize::from(last.is_present);
        let Some(entries) = self.blocks.get(last.block) else {
            return self.iter();
        };
        if first.block == last.block {
            let found = entries.get(first.index..end).unwrap_or_default();
            return Entries {
                front: found.iter(),
                blocks: [].iter(),
                back: [].iter(),
            };
        }
        let between = self.blocks.get(first.block + 1..last.block);
        Entries {
            front: self.blocks[first.block][first.index..].iter(),
            blocks: between.unwrap_or_default().iter(),
            back: entries[..end].iter(),
        }
    }

    /// Returns the entries from a key on, in order.
    pub fn range_from<'a>(&'a self, key: &K) -> Entries<'a, K, V> {
        let first = self.find(key);
        let Some(entries) = self.blocks.get(first.block) else {
            return self.iter();
        };
        Entries {
            front: entries[first.index..].iter(),
            blocks: self.blocks[first.block + 1..].iter(),
            back: [].iter(),
        }
    }

    /// Returns the last entry whose key is not greater than this one.
    pub fn last_up_to(&self, key: &K) -> Option<(&K, &V)> {
        let at = self.find(key);
        let entries = self.blocks.get(at.block)?;
        let (known, value) = if at.is_present {
            &entries[at.index]
        } else {
            &entries[at.index.checked_sub(1)?]
        };
        Some((known, value))
    }

    /// Keeps the entries that satisfy a condition.
    pub fn retain(&mut self, mut keeps: impl FnMut(&K, &mut V) -> bool) {
        for entries in &mut self.blocks {
            entries.retain_mut(|(key, value)| keeps(key, value));
        }
        self.blocks.retain(|entries| !entries.is_empty());
    }
}

impl<T> SortedSet<T> {
    pub const fn new() -> SortedSet<T> {
        SortedSet {
            members: SortedMap::new(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Returns the members, in order.
    pub fn iter(&self) -> Keys<'_, T, ()> {
        self.members.keys()
    }

    pub fn first(&self) -> Option<&T> {
        self.members.first().map(|(member, ())| member)
    }

    pub fn last(&self) -> Option<&T> {
        self.members.last().map(|(member, ())| member)
    }

    pub fn pop_first(&mut self) -> Option<T> {
        self.members.pop_first().map(|(member, ())| member)
    }

    pub fn clear(&mut self) {
        self.members.clear();
    }
}

impl<T: Ord> SortedSet<T> {
    pub fn contains<Q: Ord + ?Sized>(&self, member: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.members.contains_key(member)
    }

    /// Returns whether the member was new.
    pub fn insert(&mut self, member: T) -> bool {
        self.members.insert(member, ()).is_none()
    }

    /// Returns whether it was a member.
    pub fn remove<Q: Ord + ?Sized>(&mut self, member: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.members.remove(member).is_some()
    }

    /// Returns the members from one to another, including both, in order.
    pub fn range(&self, members: RangeInclusive<T>) -> Keys<'_, T, ()> {
        Keys(self.members.range(members))
    }

    /// Returns the members from one on, in order.
    pub fn range_from<'a>(&'a self, member: &T) -> Keys<'a, T, ()> {
        Keys(self.members.range_from(member))
    }

    /// Returns whether every member is one of another set.
    pub fn is_subset(&self, other: &SortedSet<T>) -> bool {
        self.iter().all(|member| other.contains(member))
    }

    /// Returns the last member that is not greater than this one.
    pub fn last_up_to(&self, member: &T) -> Option<&T> {
        self.members.last_up_to(member).map(|(member, ())| member)
    }

    /// Keeps the members that satisfy a condition.
    pub fn retain(&mut self, mut keeps: impl FnMut(&T) -> bool) {
        self.members.retain(|member, ()| keeps(member));
    }
}

// Equal maps may have different blocks.
impl<K: PartialEq, V: PartialEq> PartialEq for SortedMap<K, V> {
    fn eq(&self, other: &SortedMap<K, V>) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<K: Eq, V: Eq> Eq for SortedMap<K, V> {}

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> SortedMap<K, V> {
        SortedMap::new()
    }
}

impl<T> Default for SortedSet<T> {
    fn default() -> SortedSet<T> {
        SortedSet {
            members: SortedMap::new(),
        }
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for SortedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<T: fmt::Debug> fmt::Debug for SortedSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.members.keys()).finish()
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for SortedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> SortedMap<K, V> {
        let mut map = SortedMap::new();
        for (key, value) in entries {
            map.insert(key, value);
        }
        map
    }
}

impl<T: Ord> FromIterator<T> for SortedSet<T> {
    fn from_iter<I: IntoIterator<Item = T>>(members: I) -> SortedSet<T> {
        let mut set = SortedSet::new();
        set.extend(members);
        set
    }
}

impl<T: Ord> Extend<T> for SortedSet<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, members: I) {
        for member in members {
            self.insert(member);
        }
    }
}

/// Entries of a map, in order.
pub struct Entries<'a, K, V> {
    front: slice::Iter<'a, (K, V)>,
    blocks: slice::Iter<'a, Vec<(K, V)>>,
    back: slice::Iter<'a, (K, V)>,
}

/// Keys of a map or members of a set, in order.
pub struct Keys<'a, K, V>(Entries<'a, K, V>);

impl<K, V> Clone for Entries<'_, K, V> {
    fn clone(&self) -> Self {
        Entries {
            front: self.front.clone(),
            blocks: self.blocks.clone(),
            back: self.back.clone(),
        }
    }
}

impl<K, V> Clone for Keys<'_, K, V> {
    fn clone(&self) -> Self {
        Keys(self.0.clone())
    }
}

impl<'a, K, V> Iterator for Entries<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((key, value)) = self.front.next() {
                return Some((key, value));
            }
            let Some(block) = self.blocks.next() else {
                return self.back.next().map(|(key, value)| (key, value));
            };
            self.front = block.iter();
        }
    }
}

impl<K, V> DoubleEndedIterator for Entries<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((key, value)) = self.back.next_back() {
                return Some((key, value));
            }
            let Some(block) = self.blocks.next_back() else {
                return self.front.next_back().map(|(key, value)| (key, value));
            };
            self.back = block.iter();
        }
    }
}

impl<'a, K, V> Iterator for Keys<'a, K, V> {
    type Item = &'a K;

    fn next(&mut self) -> Option<&'a K> {
        self.0.next().map(|(key, _)| key)
    }
}

impl<K, V> DoubleEndedIterator for Keys<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(|(key, _)| key)
    }
}

impl<'a, K, V> IntoIterator for &'a SortedMap<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Entries<'a, K, V>;

    fn into_iter(self) -> Entries<'a, K, V> {
        self.iter()
    }
}

impl<'a, T> IntoIterator for &'a SortedSet<T> {
    type Item = &'a T;
    type IntoIter = Keys<'a, T, ()>;

    fn into_iter(self) -> Keys<'a, T, ()> {
        self.iter()
    }
}

impl<'a, T: Ord + Copy> Extend<&'a T> for SortedSet<T> {
    fn extend<I: IntoIterator<Item = &'a T>>(&mut self, members: I) {
        for member in members {
            self.insert(*member);
        }
    }
}

impl<K, V> IntoIterator for SortedMap<K, V> {
    type Item = (K, V);
    type IntoIter = std::iter::Flatten<std::vec::IntoIter<Vec<(K, V)>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.blocks.into_iter().flatten()
    }
}

impl<T> IntoIterator for SortedSet<T> {
    type Item = T;
    type IntoIter = IntoMembers<T>;

    fn into_iter(self) -> IntoMembers<T> {
        IntoMembers(self.members.into_iter())
    }
}

/// The members of a set that is given up, in order.
pub struct IntoMembers<T>(<SortedMap<T, ()> as IntoIterator>::IntoIter);

impl<T> Iterator for IntoMembers<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.next().map(|(member, ())| member)
    }
}

impl<K: Borrow<Q> + Ord, Q: Ord + ?Sized, V> Index<&Q> for SortedMap<K, V> {
    type Output = V;

    fn index(&self, key: &Q) -> &V {
        self.get(key).expect("a known key")
    }
}

impl<K: Serialize, V: Serialize> Serialize for SortedMap<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<T: Serialize> Serialize for SortedSet<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.members.keys())
    }
}

impl<'de, K: Ord + Deserialize<'de>, V: Deserialize<'de>> Deserialize<'de> for SortedMap<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SortedMap<K, V>, D::Error> {
        deserializer.deserialize_map(MapVisitor(PhantomData))
    }
}

impl<'de, T: Ord + Deserialize<'de>> Deserialize<'de> for SortedSet<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SortedSet<T>, D::Error> {
        deserializer.deserialize_seq(SetVisitor(PhantomData))
    }
}

struct MapVisitor<K, V>(PhantomData<(K, V)>);

impl<'de, K: Ord + Deserialize<'de>, V: Deserialize<'de>> Visitor<'de> for MapVisitor<K, V> {
    type Value = SortedMap<K, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut map = SortedMap::new();
        while let Some((key, value)) = entries.next_entry()? {
            map.insert(key, value);
        }
        Ok(map)
    }
}

struct SetVisitor<T>(PhantomData<T>);

impl<'de, T: Ord + Deserialize<'de>> Visitor<'de> for SetVisitor<T> {
    type Value = SortedSet<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut set = SortedSet::new();
        while let Some(member) = members.next_element()? {
            set.insert(member);
        }
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_pcg::Pcg64;
    use std::collections::BTreeMap;

    /// Keys from a small range repeat; those from a large one fill many blocks.
    #[test]
    fn contents_equal_those_of_tree() {
        for keys in [10, 300, 100_000] {
            let mut random = Pcg64::seed_from_u64(keys);
            let mut map = SortedMap::new();
            let mut tree = BTreeMap::new();
            for step in 0..5_000_u64 {
                let key = random.random_range(0..keys);
                match random.random_range(0..10) {
                    0..5 => assert_eq!(map.insert(key, step), tree.insert(key, step)),
                    5..8 => assert_eq!(map.remove(&key), tree.remove(&key)),
                    8 => assert_eq!(map.get_or_default(key), tree.entry(key).or_default()),
                    _ => assert_eq!(map.pop_first(), tree.pop_first()),
                }
                assert_eq!(map.get(&key), tree.get(&key));
                assert_eq!(map.len(), tree.len());
                assert_eq!(map.is_empty(), tree.is_empty());
                assert_eq!(map.first(), tree.first_key_value());
                assert_eq!(map.last(), tree.last_key_value());
                assert_eq!(map.range_from(&key).next(), tree.range(key..).next());
                assert!(map.range(key / 2..=key).eq(tree.range(key / 2..=key)));
                assert_eq!(map.last_up_to(&key), tree.range(..=key).next_back());
            }
            assert!(map.iter().eq(tree.iter()));
            assert!(map.iter().rev().eq(tree.iter().rev()));
            map.retain(|key, _| key % 3 == 0);
            tree.retain(|key, _| key % 3 == 0);
            assert!(map.into_iter().eq(tree));
        }
    }

    #[test]
    fn sorting_keeps_order_of_equal_keys() {
        let mut words = ["fig", "apple", "kiwi", "date", "pear", "nut"];
        sort_by_key(&mut words, |word| word.len());
        assert_eq!(words, ["fig", "nut", "kiwi", "date", "pear", "apple"]);
        sort_by(&mut words, |one, other| other.len().cmp(&one.len()));
        assert_eq!(words, ["apple", "kiwi", "date", "pear", "fig", "nut"]);
    }

    #[test]
    fn json_equals_that_of_tree() {
        let entries = [(7_u32, "seven"), (1, "one"), (30, "thirty")];
        let map: SortedMap<u32, &str> = entries.into_iter().collect();
        let tree = BTreeMap::from(entries);
        let json = serde_json::to_string(&map).expect("plain data");
        assert_eq!(json, serde_json::to_string(&tree).expect("plain data"));
        let again: SortedMap<u32, String> = serde_json::from_str(&json).expect("just written");
        assert_eq!(serde_json::to_string(&again).expect("plain data"), json);
    }
}
