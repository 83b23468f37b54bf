//! Values drawn by a seed, as they are written in files.
//!
//! Owns the drawing. Does not own what is drawn.

use std::fmt::Display;

use rand::Rng;
use rand_pcg::Pcg64;

/// Draws one value after the other.
pub(super) struct Draw(Pcg64);

impl Draw {
    pub fn by(seed: u64) -> Draw {
        Draw(Pcg64::new(u128::from(seed), 0xF0))
    }

    /// One of these, each as likely as the other.
    pub fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.0.random_range(0..all.len())]
    }

    /// True in so many of a hundred cases.
    pub fn chance(&mut self, percent: u32) -> bool {
        self.0.random_range(0..100) < percent
    }

    /// From the first to the last.
    pub fn number(&mut self, first: u32, last: u32) -> u32 {
        self.0.random_range(first..=last)
    }

    /// `key = value`, or nothing, in half of the cases.
    pub fn perhaps(&mut self, key: &str, value: impl Display) -> String {
        if self.chance(50) { format!("{key} = {value}\n") } else { String::new() }
    }

    /// `key = "value"` with one of these.
    pub fn word(&mut self, key: &str, all: &[&str]) -> String {
        format!("{key} = \"{}\"\n", self.of(all))
    }
}
