//! User counters by name, for the whole process. The task process reads them once, at the end of its attempt.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use napreduce_protocol::{Counter, CounterValues};

/// Cells live as long as the process: a job has a handful of counters, and handles must be free to copy.
static REGISTRY: Mutex<BTreeMap<String, &'static AtomicU64>> = Mutex::new(BTreeMap::new());

/// A counter of the user's own; cheap to copy and to keep.
#[derive(Debug, Clone, Copy)]
pub struct UserCounter {
    cell: &'static AtomicU64,
}

impl UserCounter {
    /// Adds to it: one relaxed atomic operation.
    #[inline]
    pub fn add(self, amount: u64) {
        self.cell.fetch_add(amount, Ordering::Relaxed);
    }

    /// What this process has counted so far.
    pub fn get(self) -> u64 {
        self.cell.load(Ordering::Relaxed)
    }
}

/// The counter of that name, made at its first use; keep the handle where records are many.
///
/// # Panics
///
/// When `name` is that of a built-in counter, such as `MAP_INPUT_RECORDS`.
pub fn counter(name: &str) -> UserCounter {
    assert!(
        Counter::of_word(name).is_none(),
        "counter name {name} is reserved for a built-in counter; choose another"
    );
    let mut registry = registry();
    if let Some(cell) = registry.get(name) {
        return UserCounter { cell };
    }
    let cell: &'static AtomicU64 = Box::leak(Box::new(AtomicU64::new(0)));
    registry.insert(name.to_owned(), cell);
    UserCounter { cell }
}

/// What all user counters of this process stand at, without those at zero.
pub fn user_counters() -> CounterValues {
    let mut values = CounterValues::default();
    for (name, cell) in registry().iter() {
        values.add(name, cell.load(Ordering::Relaxed));
    }
    values
}

/// Makes all user counters of this process stand at what was saved; those that are not in it at zero.
pub fn set_user_counters(saved: &CounterValues) {
    let known: Vec<&str> = saved.iter().map(|(name, _)| name).collect();
    for name in known.into_iter().filter(|name| Counter::of_word(name).is_none()) {
        counter(name);
    }
    for (name, cell) in registry().iter() {
        cell.store(saved.get(name), Ordering::Relaxed);
    }
}

/// A panic while the lock is held leaves at worst a missing entry, never a torn one.
fn registry() -> MutexGuard<'static, BTreeMap<String, &'static AtomicU64>> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}
