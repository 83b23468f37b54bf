//! Counter values as plain data. A coordinator keeps one set per finished task, so built-in counters are
//! stored by number; on the wire and in files they have their names. So have hot keys, with a prefix.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::built_in::Counter;

/// Counter values by name; a missing name is zero.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CounterValues {
    /// In display order, none zero.
    built_in: Vec<(Counter, u64)>,
    user: BTreeMap<String, u64>,
    /// Records of the largest groups of reduces, by readable key. No counters: `iter` leaves them out.
    hot_keys: BTreeMap<String, u64>,
}

impl CounterValues {
    /// Hot keys of an attempt, and of a job.
    pub const HOT_KEYS_MAX: usize = 16;
    /// Begins the names of hot keys in serialized counters; names of user counters cannot begin with it.
    pub const HOT_KEY_PREFIX: &str = "HOT_KEY ";

    /// Whether a name is that of a built-in counter or hot key, so that a user counter cannot have it.
    pub fn is_reserved(name: &str) -> bool {
        Counter::of_word(name).is_some() || name.starts_with(CounterValues::HOT_KEY_PREFIX)
    }

    /// Returns the value of the named counter.
    pub fn get(&self, name: &str) -> u64 {
        match Counter::of_word(name) {
            Some(counter) => self.of(counter),
            None => self.user.get(name).copied().unwrap_or(0),
        }
    }

    /// Returns the value of a built-in counter.
    pub fn of(&self, counter: Counter) -> u64 {
        self.place_of(counter)
            .map_or(0, |place| self.built_in[place].1)
    }

    /// Adds to the named counter; for a peak, keeps the larger value. Zero changes nothing.
    pub fn add(&mut self, name: &str, amount: u64) {
        if let Some(key) = name.strip_prefix(CounterValues::HOT_KEY_PREFIX) {
            return self.add_hot_key(key, amount);
        }
        match Counter::of_word(name) {
            _ if amount == 0 => {}
            Some(counter) => self.add_to(counter, amount),
            None => match self.user.get_mut(name) {
                Some(value) => *value = value.saturating_add(amount),
                None => {
                    self.user.insert(name.to_owned(), amount);
                }
            },
        }
    }

    /// As `add`, to a built-in counter.
    pub fn add_to(&mut self, counter: Counter, amount: u64) {
        match self.place_of(counter) {
            _ if amount == 0 => {}
            Ok(place) => {
                let value = &mut self.built_in[place].1;
                *value = counter.join(*value, amount);
            }
            Err(place) => self.built_in.insert(place, (counter, amount)),
        }
    }

    /// Adds records of a key, and keeps the keys with the most records. The counts are exact, since all records of a
    /// key are in one partition.
    pub fn add_hot_key(&mut self, key: &str, records: u64) {
        let known = self.hot_keys.entry(key.to_owned()).or_default();
        *known = known.saturating_add(records);
        if self.hot_keys.len() > CounterValues::HOT_KEYS_MAX
            && let Some(least) = self
                .hot_keys
                .iter()
                .min_by_key(|(_, records)| **records)
                .map(|(key, _)| key.clone())
        {
            self.hot_keys.remove(&least);
        }
    }

    /// Drops keys with fewer records.
    pub fn keep_hot_keys(&mut self, records_min: u64) {
        self.hot_keys.retain(|_, records| *records >= records_min);
    }

    /// Returns the keys with the most records in one group, the largest first.
    pub fn hot_keys(&self) -> Vec<(&str, u64)> {
        let mut keys: Vec<(&str, u64)> = self
            .hot_keys
            .iter()
            .map(|(key, records)| (key.as_str(), *records))
            .collect();
        keys.sort_by_key(|(_, records)| std::cmp::Reverse(*records));
        keys
    }

    /// Adds every counter of another set.
    pub fn merge(&mut self, other: &CounterValues) {
        for (counter, amount) in &other.built_in {
            self.add_to(*counter, *amount);
        }
        for (name, amount) in &other.user {
            self.add(name, *amount);
        }
        for (key, records) in &other.hot_keys {
            self.add_hot_key(key, *records);
        }
    }

    /// Iterates over all counters that are not zero: built-in ones in display order, then user counters by
    /// name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        let built_in = self
            .built_in
            .iter()
            .map(|(counter, value)| (counter.in_words(), *value));
        built_in.chain(
            self.user
                .iter()
                .map(|(name, value)| (name.as_str(), *value)),
        )
    }

    /// Iterates over everything that is serialized: the counters, and hot keys with their prefix.
    pub fn entries(&self) -> impl Iterator<Item = (Cow<'_, str>, u64)> {
        let counters = self
            .iter()
            .map(|(name, value)| (Cow::Borrowed(name), value));
        counters.chain(self.hot_keys.iter().map(|(key, records)| {
            (
                Cow::Owned(format!("{}{key}", CounterValues::HOT_KEY_PREFIX)),
                *records,
            )
        }))
    }

    fn place_of(&self, counter: Counter) -> Result<usize, usize> {
        self.built_in
            .binary_search_by_key(&counter, |(known, _)| *known)
    }
}

/// A map, sorted by name.
impl Serialize for CounterValues {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.entries()
            .collect::<BTreeMap<Cow<'_, str>, u64>>()
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for CounterValues {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CounterValues, D::Error> {
        let mut values = CounterValues::default();
        for (name, amount) in BTreeMap::<String, u64>::deserialize(deserializer)? {
            values.add(&name, amount);
        }
        values.built_in.shrink_to_fit();
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::super::built_in::Counters;
    use super::*;

    #[test]
    fn counter_values_merge_by_name() {
        let mut values = CounterValues::default();
        for (name, amount) in [
            ("mine", 2),
            ("SUSPENDS", 1),
            ("PEAK_ANON_BYTES", 9),
            ("BYTES_READ", 5),
            ("none", 0),
        ] {
            values.add(name, amount);
        }
        let other = values.clone();
        values.merge(&other);
        let all: Vec<(&str, u64)> = values.iter().collect();
        assert_eq!(
            all,
            [
                ("BYTES_READ", 10),
                ("SUSPENDS", 2),
                ("PEAK_ANON_BYTES", 9),
                ("mine", 4)
            ]
        );
        assert_eq!(
            (
                values.get("mine"),
                values.get("none"),
                values.of(Counter::InputBytes)
            ),
            (4, 0, 10)
        );
    }

    #[test]
    fn hot_keys_add_up_and_the_largest_remain() {
        let mut values = CounterValues::default();
        for number in 1..=20 {
            values.add_hot_key(&format!("\"key {number}\""), 100 * number);
        }
        let mut restored = values.clone();
        restored.add_hot_key("\"key 7\"", 5_000);
        values.merge(&restored);
        assert_eq!(
            values.hot_keys()[..2],
            [("\"key 7\"", 6_400), ("\"key 20\"", 4_000)]
        );
        assert_eq!(values.hot_keys().len(), CounterValues::HOT_KEYS_MAX);
        values.keep_hot_keys(4_000);
        assert_eq!(values.hot_keys().len(), 2);
        assert_eq!(values.iter().count(), 0, "they are no counters");
        let text = serde_json::to_string(&values).expect("written");
        assert_eq!(
            text,
            r#"{"HOT_KEY \"key 20\"":4000,"HOT_KEY \"key 7\"":6400}"#
        );
        assert_eq!(
            serde_json::from_str::<CounterValues>(&text).expect("read"),
            values
        );
    }

    #[test]
    fn restored_attempt_continues_its_hot_keys() {
        let first = Counters::default();
        first.add_hot_keys(
            [("cut".to_owned(), 12_000), ("small".to_owned(), 10_000)],
            0,
        );
        let second = Counters::default();
        second.add_all(&first.values());
        second.add_hot_keys([("cut".to_owned(), 18_000)], 20_000);
        assert_eq!(second.values().hot_keys(), [("cut", 30_000)]);
    }

    #[test]
    fn counter_values_serialize_as_map() {
        let mut values = CounterValues::default();
        values.add_to(Counter::Suspends, 3);
        values.add("Another", 1);
        let text = serde_json::to_string(&values).expect("written");
        assert_eq!(text, r#"{"Another":1,"SUSPENDS":3}"#);
        assert_eq!(
            serde_json::from_str::<CounterValues>(&text).expect("read"),
            values
        );
    }
}
