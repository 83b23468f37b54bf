//! Counter values as plain data. A coordinator keeps one set per finished task, so built-in counters are
//! stored by number; on the wire and in files they have their names.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::built_in::Counter;

/// Counter values by name; a missing name is zero.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CounterValues {
    /// In display order, none zero.
    built_in: Vec<(Counter, u64)>,
    user: BTreeMap<String, u64>,
}

impl CounterValues {
    /// Returns the value of the named counter.
    pub fn get(&self, name: &str) -> u64 {
        match Counter::of_word(name) {
            Some(counter) => self.of(counter),
            None => self.user.get(name).copied().unwrap_or(0),
        }
    }

    /// Returns the value of a built-in counter.
    pub fn of(&self, counter: Counter) -> u64 {
        self.place_of(counter).map_or(0, |place| self.built_in[place].1)
    }

    /// Adds to the named counter; for a peak, keeps the larger value. Zero changes nothing.
    pub fn add(&mut self, name: &str, amount: u64) {
        match Counter::of_word(name) {
            _ if amount == 0 => {}
            Some(counter) => self.add_to(counter, amount),
            None => match self.user.get_mut(name) {
                Some(value) => *value = value.saturating_add(amount),
                None => drop(self.user.insert(name.to_owned(), amount)),
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

    /// Adds every counter of another set.
    pub fn merge(&mut self, other: &CounterValues) {
        for (counter, amount) in &other.built_in {
            self.add_to(*counter, *amount);
        }
        for (name, amount) in &other.user {
            self.add(name, *amount);
        }
    }

    /// Iterates over all counters that are not zero: built-in ones in display order, then user counters by
    /// name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        let built_in = self.built_in.iter().map(|(counter, value)| (counter.in_words(), *value));
        built_in.chain(self.user.iter().map(|(name, value)| (name.as_str(), *value)))
    }

    fn place_of(&self, counter: Counter) -> Result<usize, usize> {
        self.built_in.binary_search_by_key(&counter, |(known, _)| *known)
    }
}

/// A map, sorted by name.
impl Serialize for CounterValues {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.iter().collect::<BTreeMap<&str, u64>>().serialize(serializer)
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
    use super::*;

    #[test]
    fn counter_values_merge_by_name() {
        let mut values = CounterValues::default();
        for (name, amount) in
            [("mine", 2), ("SUSPENDS", 1), ("PEAK_ANON_BYTES", 9), ("BYTES_READ", 5), ("none", 0)]
        {
            values.add(name, amount);
        }
        let other = values.clone();
        values.merge(&other);
        let all: Vec<(&str, u64)> = values.iter().collect();
        assert_eq!(all, [("BYTES_READ", 10), ("SUSPENDS", 2), ("PEAK_ANON_BYTES", 9), ("mine", 4)]);
        assert_eq!((values.get("mine"), values.get("none"), values.of(Counter::InputBytes)), (4, 0, 10));
    }

    #[test]
    fn counter_values_serialize_as_map() {
        let mut values = CounterValues::default();
        values.add_to(Counter::Suspends, 3);
        values.add("Another", 1);
        let text = serde_json::to_string(&values).expect("written");
        assert_eq!(text, r#"{"Another":1,"SUSPENDS":3}"#);
        assert_eq!(serde_json::from_str::<CounterValues>(&text).expect("read"), values);
    }
}
