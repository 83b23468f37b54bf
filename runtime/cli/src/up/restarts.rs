//! The backoff of daemon restarts.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use napreduce_protocol::Backoff;

const FIRST: Duration = Duration::from_millis(200);
const BACKOFF: Backoff = Backoff::new(FIRST, Duration::from_secs(10));
/// A daemon that lived this long starts with the first backoff again.
const STABLE_AFTER: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub struct Restarts {
    backoffs: BTreeMap<usize, Backoff>,
    due: BTreeMap<usize, Instant>,
}

impl Restarts {
    /// Schedules the restart of a daemon by its lifetime and returns the backoff.
    pub fn plan(&mut self, daemon: usize, lived: Duration) -> Duration {
        let backoff = self.backoffs.entry(daemon).or_insert(BACKOFF);
        if lived >= STABLE_AFTER {
            backoff.reset();
        }
        let wait = backoff.next_pause();
        self.due.insert(daemon, Instant::now() + wait);
        wait
    }

    /// Returns the time until the next restart.
    pub fn next(&self) -> Option<Duration> {
        self.due
            .values()
            .min()
            .map(|due| due.saturating_duration_since(Instant::now()))
    }

    /// Returns and removes the restarts that are due.
    pub fn due(&mut self) -> Vec<usize> {
        let now = Instant::now();
        let due: Vec<usize> = self
            .due
            .iter()
            .filter(|(_, at)| **at <= now)
            .map(|(daemon, _)| *daemon)
            .collect();
        self.due.retain(|_, at| *at > now);
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_until_daemon_is_stable() {
        let mut restarts = Restarts::default();
        let young = Duration::from_secs(1);
        let waits: Vec<u128> = (0..8)
            .map(|_| restarts.plan(1, young).as_millis())
            .collect();
        assert_eq!(waits, [200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
        assert_eq!(restarts.plan(2, young), FIRST, "backoffs are per daemon");
        assert_eq!(restarts.plan(1, STABLE_AFTER), FIRST, "it was stable");
        assert!(restarts.next().is_some_and(|next| next <= FIRST));
        assert!(restarts.due().is_empty());
    }
}
