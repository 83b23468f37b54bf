//! Answers that are kept for a moment, so that many pages ask no more than one does.
//!
//! Owns how long that is: the more an answer costs, the longer, so that asking takes a small share of the
//! time however many look. Does not own what is asked.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::SourceError;
use crate::lock::lock;

/// No page shows what changes more often than this.
const AGE_MIN: Duration = Duration::from_millis(250);
/// An answer is kept for so many times as long as it took.
const COST_FACTOR: u32 = 20;

/// When what took so long to ask may be asked again.
pub fn pause_after(cost: Duration) -> Duration {
    (cost * COST_FACTOR).max(AGE_MIN)
}

/// An answer with its age. Those who want it while it is being asked for wait for the one that asks, and get
/// what that one got: when nobody answers, they do not wait one after the other.
#[derive(Debug)]
pub struct Fresh<T> {
    known: Mutex<Known<T>>,
}

#[derive(Debug)]
struct Known<T> {
    kept: Option<Kept<T>>,
    /// The last failure, and when it was told.
    failed: Option<(Instant, SourceError)>,
}

#[derive(Debug)]
struct Kept<T> {
    value: Arc<T>,
    until: Instant,
}

impl<T> Default for Fresh<T> {
    fn default() -> Fresh<T> {
        Fresh { known: Mutex::new(Known { kept: None, failed: None }) }
    }
}

impl<T> Fresh<T> {
    /// The answer; asked for if there is none that is fresh. One that fails is asked for again by the next
    /// who wants it.
    pub fn get(&self, ask: impl FnOnce() -> Result<T, SourceError>) -> Result<Arc<T>, SourceError> {
        let wanted = Instant::now();
        let mut known = lock(&self.known);
        let begun = Instant::now();
        if let Some(kept) = known.kept.as_ref().filter(|kept| begun < kept.until) {
            return Ok(kept.value.clone());
        }
        if let Some((_, error)) = known.failed.as_ref().filter(|(told, _)| wanted < *told) {
            return Err(error.clone());
        }
        (known.kept, known.failed) = (None, None);
        let value =
            Arc::new(ask().inspect_err(|error| known.failed = Some((Instant::now(), error.clone())))?);
        let age = pause_after(begun.elapsed());
        known.kept = Some(Kept { value: value.clone(), until: Instant::now() + age });
        Ok(value)
    }

    /// Has the next who wants it ask: something was ordered.
    pub fn forget(&self) {
        lock(&self.known).kept = None;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use super::*;

    #[test]
    fn an_answer_is_asked_for_once_and_again_after_an_order() {
        let (fresh, asked) = (Fresh::default(), AtomicU32::new(0));
        let ask = || Ok(asked.fetch_add(1, Relaxed));
        assert_eq!((fresh.get(ask), fresh.get(ask)), (Ok(Arc::new(0)), Ok(Arc::new(0))));
        fresh.forget();
        assert_eq!(fresh.get(ask), Ok(Arc::new(1)));
    }

    #[test]
    fn of_many_who_want_it_one_asks() {
        let (fresh, asked) = (Fresh::default(), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| fresh.get(|| Ok(asked.fetch_add(1, Relaxed))));
            }
        });
        assert_eq!(asked.into_inner(), 1);
    }

    fn absent() -> SourceError {
        SourceError::Unavailable("nobody answers".to_owned())
    }

    #[test]
    fn what_failed_is_not_kept() {
        let fresh = Fresh::default();
        assert_eq!(fresh.get(|| Err(absent())), Err::<Arc<u32>, _>(absent()));
        assert_eq!(fresh.get(|| Ok(3)), Ok(Arc::new(3)));
    }

    #[test]
    fn of_many_who_wait_for_nobody_one_waits() {
        let (fresh, asked, all_want) = (Fresh::<u32>::default(), AtomicU32::new(0), Barrier::new(8));
        let ask = || {
            asked.fetch_add(1, Relaxed);
            // The others come meanwhile.
            std::thread::sleep(Duration::from_millis(300));
            Err(absent())
        };
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    all_want.wait();
                    assert_eq!(fresh.get(ask), Err(absent()));
                });
            }
        });
        // On a busy machine some come too late.
        assert!(asked.into_inner() < 8, "each of them has waited for all that came before");
    }
}
