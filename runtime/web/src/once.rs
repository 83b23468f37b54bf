//! Idempotent commands: responses by `Idempotency-Key` and sender, kept for a day and up to a limit.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use napreduce_protocol::lock;

/// How long a response is kept.
const KEPT_MILLIS: u64 = 24 * 60 * 60 * 1_000;
/// The most keys kept; the oldest are dropped.
const KEYS_MAX: usize = 10_000;

/// Sender and idempotency key.
pub type OnceKey = (String, String);

/// Responses to commands with idempotency keys.
#[derive(Debug, Default)]
pub struct Once<T> {
    known: Mutex<Known<T>>,
}

#[derive(Debug)]
struct Known<T> {
    orders: HashMap<OnceKey, Arc<Given<T>>>,
    /// Oldest first.
    order: VecDeque<(u64, OnceKey)>,
}

#[derive(Debug)]
struct Given<T> {
    what: u128,
    /// Locked while the command runs: a concurrent duplicate waits for the response.
    answer: Mutex<Option<T>>,
}

impl<T> Default for Known<T> {
    fn default() -> Known<T> {
        Known {
            orders: HashMap::new(),
            order: VecDeque::new(),
        }
    }
}

/// The key was used for another command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtherOrder;

impl<T: Clone> Once<T> {
    /// Runs the command unless one with this key succeeded before; returns the response. A failed command may be
    /// sent again. `what` identifies the command.
    ///
    /// # Errors
    /// The key was used for another command.
    pub fn run_once<E>(
        &self,
        key: OnceKey,
        what: u128,
        now_millis: u64,
        order: impl FnOnce() -> Result<T, E>,
    ) -> Result<Result<T, E>, OtherOrder> {
        let given = lock(&self.known).place(key, what, now_millis);
        if given.what != what {
            return Err(OtherOrder);
        }
        let mut answer = lock(&given.answer);
        if let Some(answer) = &*answer {
            return Ok(Ok(answer.clone()));
        }
        let outcome = order();
        if let Ok(given) = &outcome {
            *answer = Some(given.clone());
        }
        Ok(outcome)
    }
}

impl<T> Known<T> {
    fn place(&mut self, key: OnceKey, what: u128, now_millis: u64) -> Arc<Given<T>> {
        let is_old = |begun: u64| begun.saturating_add(KEPT_MILLIS) <= now_millis;
        while self.order.front().is_some_and(|(begun, _)| is_old(*begun)) {
            self.forget_oldest();
        }
        if let Some(given) = self.orders.get(&key) {
            // A failed command may be corrected and sent again.
            let is_open = given.answer.try_lock().is_ok_and(|answer| answer.is_none());
            if given.what == what || !is_open {
                return given.clone();
            }
        }
        let given = Arc::new(Given {
            what,
            answer: Mutex::new(None),
        });
        if self.orders.insert(key.clone(), given.clone()).is_none() {
            self.order.push_back((now_millis, key));
        }
        if self.order.len() > KEYS_MAX {
            self.forget_oldest();
        }
        given
    }

    fn forget_oldest(&mut self) {
        if let Some((_, key)) = self.order.pop_front() {
            self.orders.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

    use super::*;

    fn key(number: usize) -> OnceKey {
        ("ada".to_owned(), number.to_string())
    }

    #[test]
    fn command_runs_once_within_a_day() {
        let once = Once::default();
        let given = AtomicU32::new(0);
        let order = || Ok::<_, Infallible>(given.fetch_add(1, SeqCst));
        assert_eq!(once.run_once(key(1), 7, 0, order), Ok(Ok(0)));
        assert_eq!(once.run_once(key(1), 7, KEPT_MILLIS - 1, order), Ok(Ok(0)));
        assert_eq!(
            once.run_once(key(1), 8, KEPT_MILLIS - 1, order),
            Err(OtherOrder)
        );
        assert_eq!(
            once.run_once(("bob".to_owned(), "1".to_owned()), 8, 1, order),
            Ok(Ok(1))
        );
        assert_eq!(once.run_once(key(1), 8, KEPT_MILLIS, order), Ok(Ok(2)));
    }

    #[test]
    fn failed_command_may_be_sent_again() {
        let once = Once::default();
        assert_eq!(
            once.run_once(key(1), 7, 0, || Err("unavailable")),
            Ok(Err("unavailable"))
        );
        assert_eq!(once.run_once(key(1), 8, 0, || Ok::<_, &str>(3)), Ok(Ok(3)));
        assert_eq!(
            once.run_once(key(1), 7, 0, || Err("not called")),
            Err(OtherOrder)
        );
    }

    #[test]
    fn concurrent_duplicates_run_once() {
        let once = Once::default();
        let given = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    once.run_once(key(1), 7, 0, || {
                        Ok::<_, Infallible>(given.fetch_add(1, SeqCst))
                    })
                });
            }
        });
        assert_eq!(given.into_inner(), 1);
    }

    #[test]
    fn oldest_keys_are_dropped() {
        let once = Once::default();
        for number in 0..=KEYS_MAX {
            assert_eq!(
                once.run_once(key(number), 7, 0, || Ok::<_, Infallible>(number)),
                Ok(Ok(number))
            );
        }
        assert_eq!(lock(&once.known).orders.len(), KEYS_MAX);
        assert_eq!(
            once.run_once(key(0), 8, 0, || Ok::<_, Infallible>(99)),
            Ok(Ok(99))
        );
        assert_eq!(
            once.run_once(key(KEYS_MAX), 7, 0, || Ok::<_, Infallible>(99)),
            Ok(Ok(KEYS_MAX))
        );
    }
}
