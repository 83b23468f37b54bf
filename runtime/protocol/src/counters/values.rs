//! Counter values as plain data: what travels, adds up and is shown.
//!
//! Owns the joining of two sets and the order people see. Does not own the cells that are counted in.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::built_in::Counter;

/// Values of counters by name; a name that is missing stands at zero.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterValues(BTreeMap<String, u64>);

impl CounterValues {
    /// What the counter of that name stands at.
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// What a built-in counter stands at.
    pub fn of(&self, counter: Counter) -> u64 {
        self.get(counter.name())
    }

    /// Adds to the counter of that name; for a peak, keeps the larger value. Zero changes nothing.
    pub fn add(&mut self, name: &str, amount: u64) {
        if amount == 0 {
            return;
        }
        match self.0.get_mut(name) {
            Some(value) => {
                *value = match Counter::from_name(name) {
                    Some(counter) => counter.join(*value, amount),
                    None => value.saturating_add(amount),
                }
            }
            None => {
                self.0.insert(name.to_owned(), amount);
            }
        }
    }

    /// Adds every counter of another set.
    pub fn merge(&mut self, other: &CounterValues) {
        for (name, amount) in &other.0 {
            self.add(name, *amount);
        }
    }

    /// Every counter that is not zero: the built-in ones in their order, then the user's by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        let built_in = Counter::ALL.iter().filter_map(|counter| {
            self.0.get_key_value(counter.name()).map(|(name, value)| (name.as_str(), *value))
        });
        let user = self.0.iter().filter(|(name, _)| Counter::from_name(name).is_none());
        built_in.chain(user.map(|(name, value)| (name.as_str(), *value)))
    }
}
