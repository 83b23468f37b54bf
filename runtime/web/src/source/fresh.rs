//! Cached answers, so that many pages cost no more than one. An answer is kept longer the more it costs, so that requests
//! take a small share of the time.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use napreduce_protocol::lock;

use super::SourceError;

/// The least time that an answer is kept.
const AGE_MIN: Duration = Duration::from_millis(250);
/// An answer is kept this many times as long as it took.
const COST_FACTOR: u32 = 20;

/// Returns how long to wait before repeating a request of this cost.
pub fn pause_after(cost: Duration) -> Duration {
    (cost * COST_FACTOR).max(AGE_MIN)
}

/// A cached answer. Concurrent readers wait for one request and share its result, even if it fails.
#[derive(Debug)]
pub struct Fresh<T> {
    known: Mutex<Known<T>>,
}

#[derive(Debug)]
struct Known<T> {
    kept: Option<Kept<T>>,
    /// The last failure and its time.
    failed: Option<(Instant, SourceError)>,
}

#[derive(Debug)]
struct Kept<T> {
    value: Arc<T>,
    until: Instant,
}

impl<T> Default for Fresh<T> {
    fn default() -> Fresh<T> {
        Fresh {
            known: Mutex::new(Known {
                kept: None,
                failed: None,
            }),
        }
    }
}

impl<T> Fresh<T> {
    /// Returns the cached answer, or requests it if it is stale. A failure is not cached for later readers.
    pub fn get(&self, ask: impl FnOnce() -> Result<T, SourceError>) -> Result<Arc<T>, SourceError> {
        let wanted = Instant::now();
        let mut known = lock(&self.known);
        let begun = Instant::now();
        if let Some(kept) = known.kept.as_ref().filter(|kept| begun < kept.until) {
            return Ok(kept.value.clone());
        }
        if let Some((_, error)) = known.failed.as_ref().filter(|(failed, _)| wanted < *failed) {
            return Err(error.clone());
        }
        (known.kept, known.failed) = (None, None);
        let value = Arc::new(
            ask().inspect_err(|error| known.failed = Some((Instant::now(), error.clone())))?,
        );
        let age = pause_after(begun.elapsed());
        known.kept = Some(Kept {
            value: value.clone(),
            until: Instant::now() + age,
        });
        Ok(value)
    }

    /// Drops the cached answer, after a command.
    pub fn invalidate(&self) {
        lock(&self.known).kept = None;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use super::*;

    #[test]
    fn answer_is_cached_until_invalidated() {
        let fresh = Fresh::default();
        let asked = AtomicU32::new(0);
        let ask = || Ok(asked.fetch_add(1, Relaxed));
        assert_eq!(
            (fresh.get(ask), fresh.get(ask)),
            (Ok(Arc::new(0)), Ok(Arc::new(0)))
        );
        fresh.invalidate();
        assert_eq!(fresh.get(ask), Ok(Arc::new(1)));
    }

    #[test]
    fn concurrent_readers_share_one_request() {
        let fresh = Fresh::default();
        let asked = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| fresh.get(|| Ok(asked.fetch_add(1, Relaxed))));
            }
        });
        assert_eq!(asked.into_inner(), 1);
    }

    fn unavailable() -> SourceError {
        SourceError::Unavailable("no coordinator".to_owned())
    }

    #[test]
    fn failure_is_not_cached() {
        let fresh = Fresh::default();
        assert_eq!(
            fresh.get(|| Err(unavailable())),
            Err::<Arc<u32>, _>(unavailable())
        );
        assert_eq!(fresh.get(|| Ok(3)), Ok(Arc::new(3)));
    }

    #[test]
    fn concurrent_readers_share_one_failure() {
        let fresh = Fresh::<u32>::default();
        let asked = AtomicU32::new(0);
        let all_started = Barrier::new(8);
        let ask = || {
            asked.fetch_add(1, Relaxed);
            // The other readers arrive meanwhile.
            std::thread::sleep(Duration::from_millis(300));
            Err(unavailable())
        };
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    all_started.wait();
                    assert_eq!(fresh.get(ask), Err(unavailable()));
                });
            }
        });
        // On a busy machine some arrive later.
        assert!(asked.into_inner() < 8, "every reader sent its own request");
    }
}
