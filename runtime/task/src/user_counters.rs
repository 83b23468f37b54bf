//! User counters by name, for the whole process. The task process reads them once, at the end of its attempt.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use napreduce_protocol::{Counter, CounterValues};

/// Cells live as long as the process: a job has a handful of counters, and handles must be free to copy.
static REGISTRY: Mutex<BTreeMap<String, &'static AtomicU64>> = Mutex::new(BTreeMap::new());

/// A user counter; cheap to copy.
#[derive(Debug, Clone, Copy)]
pub struct UserCounter {
    cell: &'static AtomicU64,
}

impl UserCounter {
    /// Adds to the counter with one relaxed atomic operation.
    #[inline]
    pub fn add(self, amount: u64) {
        self.cell.fetch_add(amount, Ordering::Relaxed);
    }

    /// Returns the count of this process so far.
    pub fn get(self) -> u64 {
        self.cell.load(Ordering::Relaxed)
    }
}

/// Returns the counter with this name, which is created by the first call. Keep the handle if there are many
/// records.
///
/// # Panics
///
/// Panics if `name` is a built-in counter, such as `MAP_INPUT_RECORDS`.
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

/// Returns all user counters of this process that are not zero.
pub fn user_counters() -> CounterValues {
    let mut values = CounterValues::default();
    for (name, cell) in registry().iter() {
        values.add(name, cell.load(Ordering::Relaxed));
    }
    values
}

/// Sets all user counters of this process to saved values, the missing ones to zero.
pub fn set_user_counters(saved: &CounterValues) {
    let known: Vec<&str> = saved.iter().map(|(name, _)| name).collect();
    for name in known.into_iter().filter(|name| Counter::of_word(name).is_none()) {
        counter(name);
    }
    for (name, cell) in registry().iter() {
        cell.store(saved.get(name), Ordering::Relaxed);
    }
}

/// Locks the counters; a panic can at worst leave an entry out.
fn registry() -> MutexGuard<'static, BTreeMap<String, &'static AtomicU64>> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}
