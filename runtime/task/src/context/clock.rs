//! The active time of an attempt, without the time in which the process was stopped.
//!
//! The worker writes the duration of a stop into the control channel *before* it continues the process. A
//! reader of this clock reads the real one, then processes all messages in the channel, and reads again if
//! they changed the sum. So no stop is included, although no memory is shared with the worker.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use napreduce_protocol::whole_nanos;

/// The clock of an attempt; it starts on creation.
#[derive(Debug)]
pub struct TaskClock {
    began: Instant,
    /// Total stopped time in nanoseconds.
    suspended: AtomicU64,
    /// Active time of earlier attempts in milliseconds.
    before: AtomicU64,
}

impl Default for TaskClock {
    fn default() -> TaskClock {
        TaskClock {
            began: Instant::now(),
            suspended: AtomicU64::default(),
            before: AtomicU64::default(),
        }
    }
}

impl TaskClock {
    /// Returns the active time in milliseconds; `catch_up` processes the messages in the control channel.
    pub fn active_millis(&self, catch_up: impl Fn()) -> u64 {
        loop {
            let known = self.suspended.load(Ordering::Acquire);
            let now = self.began.elapsed();
            catch_up();
            if self.suspended.load(Ordering::Acquire) == known {
                let active = whole_nanos(now).saturating_sub(known);
                return self
                    .before
                    .load(Ordering::Relaxed)
                    .saturating_add(active / 1_000_000);
            }
        }
    }

    pub fn add_active_millis(&self, millis: u64) {
        self.before.fetch_add(millis, Ordering::Relaxed);
    }

    /// Sets the total stopped time.
    pub fn set_suspended(&self, nanos: u64) {
        self.suspended.store(nanos, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::*;

    fn began_before(duration: Duration) -> TaskClock {
        let began = Instant::now()
            .checked_sub(duration)
            .expect("the machine runs for longer");
        TaskClock {
            began,
            ..TaskClock::default()
        }
    }

    #[test]
    fn stop_time_reported_late_is_not_counted() {
        let clock = began_before(Duration::from_secs(30));
        let waiting = Cell::new(true);
        let active = clock.active_millis(|| {
            if waiting.take() {
                clock.set_suspended(20_000_000_000);
            }
        });
        assert!((10_000..15_000).contains(&active), "{active}");
    }

    #[test]
    fn time_of_earlier_attempts_is_counted() {
        let clock = began_before(Duration::from_secs(1));
        clock.add_active_millis(5_000);
        let active = clock.active_millis(|| {});
        assert!((6_000..10_000).contains(&active), "{active}");
    }
}
