//! Cases of one test, several at a time.

use std::sync::{Mutex, PoisonError};
use std::thread;

/// A case is a program that starts, waits and ends: so many at a time keep two processors busy.
const CASES_AT_A_TIME: usize = 4;

/// Checks all of these cases, several at a time, in this order.
///
/// # Panics
/// When a case does; the others that have begun end first.
pub fn side_by_side<T: Send>(cases: impl Iterator<Item = T> + Send, check: impl Fn(T) + Sync) {
    let cases = Mutex::new(cases);
    let next = || cases.lock().unwrap_or_else(PoisonError::into_inner).next();
    let check_what_is_left = || {
        while let Some(case) = next() {
            check(case);
        }
    };
    thread::scope(|scope| (0..CASES_AT_A_TIME).for_each(|_| drop(scope.spawn(check_what_is_left))));
}
