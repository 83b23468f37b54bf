//! Repeatable random numbers.

use std::ops::RangeInclusive;
use std::time::Duration;

use napreduce_protocol::whole_micros;

/// Random numbers that follow from a seed: the generator of Steele, Lea and Flood (2014), with 64 bits of state.
#[derive(Debug, Clone)]
pub struct SplitMix(u64);

impl SplitMix {
    /// Creates a generator.
    pub fn new(seed: u64) -> SplitMix {
        SplitMix(seed)
    }

    /// Returns the next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Returns a number below `limit`, which is not 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.number() % limit
    }

    /// Returns an index of a slice of this length, which is not 0.
    pub fn choice(&mut self, length: usize) -> usize {
        let index = self.below(length as u64);
        usize::try_from(index).unwrap_or(0)
    }

    /// Returns a time span within the bounds, in whole microseconds.
    pub fn duration(&mut self, bounds: &RangeInclusive<Duration>) -> Duration {
        let least = whole_micros(*bounds.start());
        let most = whole_micros(*bounds.end());
        let choices = most.saturating_sub(least).saturating_add(1);
        Duration::from_micros(least + self.below(choices))
    }
}
