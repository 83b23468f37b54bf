//! Counts the jobs, attempts and workers that views return to policies, so that tests can limit the cost of a
//! decision. One count per thread, in builds with debug assertions only.

use std::cell::Cell;

thread_local! {
    static LOOKS: Cell<u64> = const { Cell::new(0) };
}

/// Counts one more.
#[inline]
pub(crate) fn looked() {
    if cfg!(debug_assertions) {
        LOOKS.set(LOOKS.get() + 1);
    }
}

/// Returns how many jobs, attempts and workers views have returned on this thread; zero in builds without
/// debug assertions.
pub fn looks() -> u64 {
    LOOKS.get()
}
