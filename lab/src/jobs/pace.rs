//! Owns time that passes in a task by sleeping: as much as was asked for in all, however late each sleep
//! ends, and none of it while the process is stopped. What the time stands for belongs to the jobs.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The longest single sleep: a process that is stopped in one does not sleep the rest of it afterwards.
const SLICE: Duration = Duration::from_millis(5);
/// A sleep that is late by more was one in which the process was stopped.
const LATE_MAX: Duration = Duration::from_millis(10);

/// Sleeps that add up.
#[derive(Debug, Default)]
pub struct Pace {
    /// Microseconds that are still to be slept; less than none after a sleep that was late.
    owed: Mutex<i64>,
}

impl Pace {
    /// Sleeps for so long, less what earlier sleeps were late.
    pub fn pass(&self, time: Duration) {
        let mut owed = self.owed.lock().unwrap_or_else(PoisonError::into_inner);
        *owed += micros(time);
        while *owed > 0 {
            let slice = SLICE.min(Duration::from_micros(owed.unsigned_abs()));
            let began = Instant::now();
            thread::sleep(slice);
            *owed -= counted(slice, began.elapsed());
        }
    }

    /// Time in which something else was done counts as slept.
    pub fn credit(&self, time: Duration) {
        *self.owed.lock().unwrap_or_else(PoisonError::into_inner) -= micros(time);
    }
}

fn counted(slice: Duration, passed: Duration) -> i64 {
    micros(passed.min(slice + LATE_MAX))
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_counts_as_little_and_a_late_sleep_as_it_was() {
        let millis = Duration::from_millis;
        assert_eq!(counted(millis(5), millis(6)), 6_000);
        assert_eq!(counted(millis(5), millis(900)), 15_000);
    }

    #[test]
    fn many_short_sleeps_are_as_long_as_they_should_be() {
        let pace = Pace::default();
        let began = Instant::now();
        (0..100).for_each(|_| pace.pass(Duration::from_micros(300)));
        // Each sleep alone is late by some fifty microseconds; a stop of the test itself makes it longer.
        assert!(began.elapsed() >= Duration::from_millis(29), "{:?}", began.elapsed());
        assert!(*pace.owed.lock().unwrap() <= 0);
    }

    #[test]
    fn what_was_done_meanwhile_is_not_slept() {
        let pace = Pace::default();
        pace.credit(Duration::from_secs(3_600));
        let began = Instant::now();
        pace.pass(Duration::from_secs(3_599));
        assert!(began.elapsed() < Duration::from_secs(60));
    }
}
