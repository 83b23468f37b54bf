//! Distributes equal units of work to threads.

use crate::watch::Watch;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// Returns the requested number of threads, or one per core for 0, limited to the number of units.
fn thread_count(requested: usize, units: u64) -> usize {
    let wanted = match requested {
        // One thread is used when the number of cores is unknown.
        0 => thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    wanted
        .min(usize::try_from(units).unwrap_or(usize::MAX))
        .max(1)
}

/// Threads that share units `0..units` of work.
pub(crate) struct Workers<'w> {
    /// Number of threads; 0 is one per core.
    pub(crate) threads: usize,
    pub(crate) units: u64,
    pub(crate) watch: &'w Watch,
}

impl Workers<'_> {
    /// Runs `step` for every unit and returns the state of each thread.
    ///
    /// Units are taken in ascending order, so that the units in progress are close together.
    ///
    /// # Errors
    ///
    /// Returns the first error of a step, or that of `interrupted` when the watch has stopped the work.
    pub(crate) fn run<S: Send, E: Send>(
        &self,
        interrupted: impl FnOnce() -> E,
        state: impl Fn() -> S + Sync,
        step: impl Fn(&mut S, u64) -> Result<(), E> + Sync,
    ) -> Result<Vec<S>, E> {
        let Self {
            threads,
            units,
            watch,
        } = *self;
        let threads = thread_count(threads, units);
        let next = AtomicU64::new(0);
        let halted = AtomicBool::new(false);
        let failure = Mutex::new(None);
        let work = || {
            let mut own = state();
            while !halted.load(Ordering::Relaxed) && !watch.stopped() {
                let unit = next.fetch_add(1, Ordering::Relaxed);
                if unit >= units {
                    break;
                }
                if let Err(error) = step(&mut own, unit) {
                    halted.store(true, Ordering::Relaxed);
                    let mut first = failure
                        .lock()
                        .expect("no thread panics while holding this lock");
                    first.get_or_insert(error);
                }
            }
            own
        };
        let states = thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let mut states = vec![work()];
            for other in others {
                match other.join() {
                    Ok(own) => states.push(own),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            states
        });
        match failure
            .into_inner()
            .expect("no thread panics while holding this lock")
        {
            Some(error) => Err(error),
            None if watch.stopped() => Err(interrupted()),
            None => Ok(states),
        }
    }
}
