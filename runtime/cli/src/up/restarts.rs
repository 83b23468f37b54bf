//! The backoff of restarts of a daemon: longer each time it dies young.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const FIRST: Duration = Duration::from_millis(200);
const MAX: Duration = Duration::from_secs(10);
/// One that has lived so long was well.
const WELL: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub struct Restarts {
    /// How long each daemon was waited for last.
    waits: BTreeMap<usize, Duration>,
    due: BTreeMap<usize, Instant>,
}

impl Restarts {
    /// After which time a daemon that has lived so long will be due.
    pub fn plan(&mut self, daemon: usize, lived: Duration) -> Duration {
        let wait = match self.waits.get(&daemon) {
            Some(last) if lived < WELL => (*last * 2).min(MAX),
            _ => FIRST,
        };
        self.waits.insert(daemon, wait);
        self.due.insert(daemon, Instant::now() + wait);
        wait
    }

    /// How long until the next is due.
    pub fn next(&self) -> Option<Duration> {
        self.due.values().min().map(|due| due.saturating_duration_since(Instant::now()))
    }

    /// Those that are due now.
    pub fn due(&mut self) -> Vec<usize> {
        let now = Instant::now();
        let due: Vec<usize> =
            self.due.iter().filter(|(_, at)| **at <= now).map(|(daemon, _)| *daemon).collect();
        self.due.retain(|_, at| *at > now);
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_dies_young_waits_longer_each_time() {
        let mut restarts = Restarts::default();
        let young = Duration::from_secs(1);
        let waits: Vec<u128> = (0..8).map(|_| restarts.plan(1, young).as_millis()).collect();
        assert_eq!(waits, [200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
        assert_eq!(restarts.plan(2, young), FIRST, "each for itself");
        assert_eq!(restarts.plan(1, WELL), FIRST, "it was well");
        assert!(restarts.next().is_some_and(|next| next <= FIRST));
        assert!(restarts.due().is_empty());
    }
}
