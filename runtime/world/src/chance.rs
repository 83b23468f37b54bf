//! Random choices of a run. Every actor has a stream of its own, so that one more draw of one actor does not change
//! the choices of the others.

use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The stream of one actor.
#[derive(Debug, Clone)]
pub struct Chance {
    stream: Pcg64Mcg,
}

impl Chance {
    /// Creates the stream of this actor in the run of this seed.
    pub fn new(seed: u64, actor: &str) -> Chance {
        Chance {
            stream: Pcg64Mcg::seed_from_u64(xxh3_64_with_seed(actor.as_bytes(), seed)),
        }
    }

    /// Draws a number from `least` to `most`.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        self.stream.random_range(least..=most)
    }

    /// Draws a number from `least` to `most`.
    pub fn count(&mut self, least: u32, most: u32) -> u32 {
        self.stream.random_range(least..=most)
    }

    /// Returns a stream that begins here.
    pub fn split(&mut self) -> Chance {
        Chance {
            stream: Pcg64Mcg::seed_from_u64(self.stream.random()),
        }
    }

    /// Draws true in `permille` of 1000 cases.
    pub fn happens(&mut self, permille: u32) -> bool {
        self.count(1, 1000) <= permille
    }

    /// Draws a duration of this many milliseconds, and a fraction of one.
    pub fn millis(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_micros(self.between(least * 1000, most * 1000))
    }

    /// Draws one of these; `None` if there are none.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        if choices.is_empty() {
            return None;
        }
        choices.get(self.stream.random_range(0..choices.len()))
    }
}
