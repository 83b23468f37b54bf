//! Taking a lock whatever happened to whoever had it.
//!
//! Owns that a panic of one request ends that request alone: what is locked here is whole between statements.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
