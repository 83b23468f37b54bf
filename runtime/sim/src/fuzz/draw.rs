//! Random values in configuration syntax.

use std::fmt::Display;

use rand::Rng;
use rand_pcg::Pcg64;

/// A seeded source of random values.
pub(super) struct Draw(Pcg64);

impl Draw {
    pub fn by(seed: u64) -> Draw {
        Draw(Pcg64::new(u128::from(seed), 0xF0))
    }

    /// Returns one of these values, uniformly.
    pub fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.0.random_range(0..all.len())]
    }

    /// Returns true with this probability.
    pub fn chance(&mut self, percent: u32) -> bool {
        self.0.random_range(0..100) < percent
    }

    /// Returns a number between both bounds, inclusive.
    pub fn number(&mut self, first: u32, last: u32) -> u32 {
        self.0.random_range(first..=last)
    }

    /// Returns `key = value` with probability one half, otherwise nothing.
    pub fn perhaps(&mut self, key: &str, value: impl Display) -> String {
        if self.chance(50) {
            format!("{key} = {value}\n")
        } else {
            String::new()
        }
    }

    /// Returns `key = "value"` with one of these values.
    pub fn word(&mut self, key: &str, all: &[&str]) -> String {
        format!("{key} = \"{}\"\n", self.of(all))
    }
}
