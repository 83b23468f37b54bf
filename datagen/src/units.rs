//! Equal units of work shared out to threads.
//!
//! Owns who takes which unit and stopping at the first failure. Does not own what a unit is.

use crate::watch::Watch;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// As many threads as were asked for, or with 0 one per core, but never more than there are units.
fn thread_count(asked: usize, units: u64) -> usize {
    let wanted = match asked {
        // A machine that does not say how many cores it has is given one thread, which is always right.
        0 => thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    wanted.min(usize::try_from(units).unwrap_or(usize::MAX)).max(1)
}

/// Does units `0..units` on `threads` threads (0 is one per core), each with a state of its own, and returns
/// the states; when it fails, the first failure to be noticed, or that it was interrupted.
///
/// Units are taken in ascending order, so that the work in flight is always close together.
pub(crate) fn run<S: Send, E: Send>(
    threads: usize,
    units: u64,
    watch: &Watch,
    interrupted: impl FnOnce() -> E,
    state: impl Fn() -> S + Sync,
    step: impl Fn(&mut S, u64) -> Result<(), E> + Sync,
) -> Result<Vec<S>, E> {
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
                let mut first = failure.lock().expect("nothing panics while it holds this lock");
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
    match failure.into_inner().expect("nothing panics while it holds this lock") {
        Some(error) => Err(error),
        None if watch.stopped() => Err(interrupted()),
        None => Ok(states),
    }
}
