//! The time of this machine, and the engine's time: microseconds since the start of the journal, across
//! restarts.
//!
//! Monotonic time is tokio's, so measured times and timers agree even if a test or simulation pauses the
//! clock.

use std::time::Duration;

use napreduce_engine::Time;
use napreduce_protocol::whole_micros;
use tokio::time::Instant;

/// The engine's clock. Continues from the last time in the journal, even if the machine's clock was set back.
#[derive(Debug, Clone, Copy)]
pub struct EngineClock {
    /// The engine's time at `started`.
    base: Time,
    started: Instant,
}

/// Returns the monotonic time.
pub fn now() -> Instant {
    Instant::now()
}

impl EngineClock {
    /// Creates a clock whose time 0 was at `epoch_micros`, and whose time is at least `last`. The wall clock shows
    /// `unix_micros` now.
    pub(crate) fn resume(unix_micros: u64, epoch_micros: u64, last: Time) -> EngineClock {
        let elapsed = Time(unix_micros.saturating_sub(epoch_micros));
        EngineClock {
            base: elapsed.max(last),
            started: now(),
        }
    }

    pub fn now(&self) -> Time {
        let elapsed = whole_micros(now().duration_since(self.started));
        Time(self.base.0.saturating_add(elapsed))
    }

    /// Returns the engine's time of an event that happened so long ago.
    pub fn before_now(&self, age: Duration) -> Time {
        let age = whole_micros(age);
        Time(self.now().0.saturating_sub(age))
    }

    /// Returns the engine's time in microseconds since 1970; its time 0 was at `epoch_micros`. Not affected by
    /// changes of the machine's clock.
    pub fn unix_micros(&self, epoch_micros: u64) -> u64 {
        epoch_micros.saturating_add(self.now().0)
    }

    /// Returns when a future time of the engine is reached.
    pub(crate) fn instant(&self, at: Time) -> Instant {
        self.started + Duration::from_micros(at.0.saturating_sub(self.base.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_monotonic_across_restarts() {
        let day = 86_400_000_000;
        let ahead = Time(10 * day);
        let clock = EngineClock::resume(10 * day, 10 * day, ahead);
        assert!(
            clock.now() >= ahead,
            "the journal is ahead of the machine's clock"
        );
        let clock = EngineClock::resume(10 * day, 9 * day, Time(5));
        assert!(
            clock.now() >= Time(day),
            "time passes while no coordinator runs"
        );
    }
}
