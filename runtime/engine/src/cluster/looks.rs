//! How many jobs, attempts and workers policies were shown, so that tests can hold a decision to a
//! few of them.
//!
//! Owns a count for each thread, in builds with debug assertions only. Does not own who looks, nor what a
//! policy keeps.

use std::cell::Cell;

thread_local! {
    static LOOKS: Cell<u64> = const { Cell::new(0) };
}

/// A policy is shown one more.
#[inline]
pub(crate) fn looked() {
    if cfg!(debug_assertions) {
        LOOKS.set(LOOKS.get() + 1);
    }
}

/// How many jobs, attempts and workers views showed on this thread so far; zero in builds without
/// debug assertions.
pub fn looks() -> u64 {
    LOOKS.get()
}
