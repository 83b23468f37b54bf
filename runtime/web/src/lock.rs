//! Locks that ignore poisoning: a panic ends one request alone, and the values are consistent between statements.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
