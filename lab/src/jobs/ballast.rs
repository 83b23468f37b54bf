//! Owns memory that a task fills with random bytes and reads back at its end, so that the kernel must swap it
//! out to use it otherwise. A restored attempt fills it again: it is rebuilt from its seed and is no part of
//! a checkpoint.

use std::sync::{Mutex, PoisonError};

const WORDS_OF_MIB: usize = (1 << 20) / 8;

/// The memory, empty until it is filled.
#[derive(Debug)]
pub struct Ballast {
    mib: u64,
    seed: u64,
    words: Mutex<Vec<u64>>,
}

impl Ballast {
    pub fn new(mib: u64, seed: u64) -> Ballast {
        Ballast { mib, seed, words: Mutex::new(Vec::new()) }
    }

    /// Fills it, unless that is done or there is none.
    pub fn fill_once(&self) {
        if self.mib == 0 {
            return;
        }
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        if words.is_empty() {
            let length = usize::try_from(self.mib).unwrap_or(usize::MAX).saturating_mul(WORDS_OF_MIB);
            words.reserve_exact(length);
            let mut state = self.seed | 1;
            words.extend(std::iter::repeat_with(|| next(&mut state)).take(length));
        }
    }

    /// Reads all of it; the sum depends on every word and its place.
    pub fn read_back(&self) -> u64 {
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        words.iter().fold(self.seed, |sum, word| sum.rotate_left(5).wrapping_add(*word))
    }
}

fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_fills_the_same_and_every_word_counts() {
        let sum = |seed, touch: Option<usize>| {
            let ballast = Ballast::new(1, seed);
            ballast.fill_once();
            if let Some(at) = touch {
                ballast.words.lock().unwrap()[at] ^= 1;
            }
            ballast.fill_once();
            ballast.read_back()
        };
        assert_eq!(sum(7, None), sum(7, None));
        assert_ne!(sum(7, None), sum(8, None));
        assert_ne!(sum(7, None), sum(7, Some(0)));
        assert_ne!(sum(7, None), sum(7, Some(WORDS_OF_MIB - 1)));
    }

    #[test]
    fn no_memory_is_nothing() {
        let ballast = Ballast::new(0, 5);
        ballast.fill_once();
        assert_eq!(ballast.read_back(), 5);
    }
}
