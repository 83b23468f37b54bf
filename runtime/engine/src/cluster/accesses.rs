//! Counts the jobs, attempts and workers that views return to policies, so that tests can limit the cost of a
//! decision. One count per thread, in builds with debug assertions only.

use std::cell::Cell;

thread_local! {
    static ACCESSES: Cell<u64> = const { Cell::new(0) };
}

/// Counts one access.
#[inline]
pub(crate) fn count_access() {
    if cfg!(debug_assertions) {
        ACCESSES.set(ACCESSES.get() + 1);
    }
}

/// Returns how many jobs, attempts and workers views have returned on this thread; zero in builds without
/// debug assertions.
pub fn accesses() -> u64 {
    ACCESSES.get()
}
