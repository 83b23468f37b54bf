//! Pauses between the tries of an action that failed for a passing reason.

use std::time::Duration;

/// Pauses that double up to a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    next: Duration,
    max: Duration,
}

impl Backoff {
    pub const fn new(first: Duration, max: Duration) -> Backoff {
        Backoff {
            first,
            next: first,
            max,
        }
    }

    /// Returns the pause before the next try.
    pub fn peek(&self) -> Duration {
        self.next
    }

    /// Returns the pause before the next try, and doubles the one after it.
    pub fn next_pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = pause.saturating_mul(2).min(self.max);
        pause
    }

    /// Begins again with the first pause.
    pub fn reset(&mut self) {
        self.next = self.first;
    }

    /// Returns the pause after this many failed tries.
    pub fn after(&self, tries: u32) -> Duration {
        self.first
            .saturating_mul(2_u32.saturating_pow(tries))
            .min(self.max)
    }
}

/// Returns between half of a pause and all of it, so that processes do not try again all at once.
pub fn jittered(pause: Duration) -> Duration {
    // Without randomness they do, which is harmless.
    jittered_by(pause, getrandom::u32().unwrap_or(u32::MAX))
}

/// Returns between half of a pause and all of it; the longer, the larger the random number is.
pub fn jittered_by(pause: Duration, random: u32) -> Duration {
    pause.mul_f64(0.5 + f64::from(random) / f64::from(u32::MAX) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_limit() {
        let second = Duration::from_secs(1);
        let mut backoff = Backoff::new(second, 3 * second);
        let pauses = [(); 4].map(|()| backoff.next_pause());
        assert_eq!(pauses, [second, 2 * second, 3 * second, 3 * second]);
        for (tries, pause) in (0..).zip(pauses) {
            assert_eq!(backoff.after(tries), pause);
        }
        assert_eq!(backoff.after(u32::MAX), 3 * second);
        backoff.reset();
        assert_eq!(backoff.peek(), second);
    }

    #[test]
    fn jittered_pause_is_at_least_half() {
        let second = Duration::from_secs(1);
        for _ in 0..100 {
            let pause = jittered(second);
            assert!(second / 2 <= pause && pause <= second, "{pause:?}");
        }
    }
}
