//! How often something may happen.
//!
//! Owns a bucket of tokens: full at first, filled again at a steady pace. Does not own what is done when it
//! is empty.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::lock::lock;

/// So many in so much time, and as many at once.
#[derive(Debug)]
pub struct Pace {
    each: Duration,
    depth: Duration,
    /// When it was, or will be, full.
    full_at: Mutex<Instant>,
}

impl Pace {
    /// At most `count` within `time`, from now on.
    pub fn new(count: u32, time: Duration, now: Instant) -> Pace {
        Pace { each: time / count.max(1), depth: time, full_at: Mutex::new(now) }
    }

    /// Whether one more may happen now; then it counts.
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
    fn so_many_at_once_and_then_at_a_steady_pace() {
        let begin = Instant::now();
        let pace = Pace::new(5, Duration::from_secs(10), begin);
        let allowed = |at: u64| pace.allows(begin + Duration::from_millis(at));
        assert_eq!([(); 7].map(|()| allowed(0)), [true, true, true, true, true, false, false]);
        assert_eq!((allowed(1_999), allowed(2_000), allowed(2_001)), (false, true, false));
        assert_eq!([(); 6].map(|()| allowed(60_000)), [true, true, true, true, true, false]);
    }
}
