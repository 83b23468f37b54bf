//! Rate limiting by a token bucket, which is full at first.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use napreduce_protocol::lock;

/// A rate limit; the whole amount is allowed at once.
#[derive(Debug)]
pub struct Pace {
    each: Duration,
    depth: Duration,
    /// The time at which the bucket was or will be full.
    full_at: Mutex<Instant>,
}

impl Pace {
    /// Allows `count` events within `time`.
    pub fn new(count: u32, time: Duration, now: Instant) -> Pace {
        Pace {
            each: time / count.max(1),
            depth: time,
            full_at: Mutex::new(now),
        }
    }

    /// Whether one more event is allowed now; if so, counts it.
    pub fn allows(&self, now: Instant) -> bool {
        let mut full_at = lock(&self.full_at);
        let next = (*full_at).max(now) + self.each;
        let is_allowed = next <= now + self.depth;
        if is_allowed {
            *full_at = next;
        }
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pace_allows_a_burst_then_a_steady_rate() {
        let begin = Instant::now();
        let pace = Pace::new(5, Duration::from_secs(10), begin);
        let allowed = |at: u64| pace.allows(begin + Duration::from_millis(at));
        assert_eq!(
            [(); 7].map(|()| allowed(0)),
            [true, true, true, true, true, false, false]
        );
        assert_eq!(
            (allowed(1_999), allowed(2_000), allowed(2_001)),
            (false, true, false)
        );
        assert_eq!(
            [(); 6].map(|()| allowed(60_000)),
            [true, true, true, true, true, false]
        );
    }
}
