//! User counters by name, for the whole process. The task process reads them once, at the end of its attempt.
//! Attempts on threads of one process count apart.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use napreduce_protocol::{Counter, CounterValues, lock};

/// Cells live as long as the process: a job has a handful of counters, and handles must be free to copy.
static REGISTRY: Mutex<BTreeMap<String, UserCounter>> = Mutex::new(BTreeMap::new());

/// Whether any thread has ever counted apart, so that a task process need not look for it.
static COUNTS_APART: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The counts of the attempt on this thread, by the number of their counter.
    static APART: RefCell<Option<Vec<u64>>> = const { RefCell::new(None) };
}

/// A user counter; cheap to copy.
#[derive(Debug, Clone, Copy)]
pub struct UserCounter {
    cell: &'static AtomicU64,
    /// Its number among the counters of this process.
    number: usize,
}

impl UserCounter {
    /// Adds to the counter with one relaxed atomic operation. A counter stays at its greatest value, `u64::MAX`, when
    /// it is reached, in a task as in the sum of all tasks.
    #[inline]
    pub fn add(self, amount: u64) {
        if COUNTS_APART.load(Ordering::Relaxed) && self.add_apart(amount) {
            return;
        }
        let before = self.cell.fetch_add(amount, Ordering::Relaxed);
        if before.checked_add(amount).is_none() {
            self.cell.store(u64::MAX, Ordering::Relaxed);
        }
    }

    /// Returns the count of this attempt so far.
    pub fn get(self) -> u64 {
        let apart =
            APART.with_borrow(|counts| counts.as_ref().map(|counts| count_of(counts, self)));
        apart.unwrap_or_else(|| self.cell.load(Ordering::Relaxed))
    }

    fn set(self, count: u64) {
        let is_apart = APART.with_borrow_mut(|counts| {
            counts
                .as_mut()
                .map(|counts| *place_of(counts, self) = count)
                .is_some()
        });
        if !is_apart {
            self.cell.store(count, Ordering::Relaxed);
        }
    }

    /// Returns false if this thread does not count apart.
    fn add_apart(self, amount: u64) -> bool {
        APART.with_borrow_mut(|counts| {
            let Some(counts) = counts else { return false };
            let count = place_of(counts, self);
            *count = count.saturating_add(amount);
            true
        })
    }
}

fn count_of(counts: &[u64], counter: UserCounter) -> u64 {
    counts.get(counter.number).copied().unwrap_or(0)
}

fn place_of(counts: &mut Vec<u64>, counter: UserCounter) -> &mut u64 {
    if counts.len() <= counter.number {
        counts.resize(counter.number + 1, 0);
    }
    &mut counts[counter.number]
}

/// Counts of this thread alone, from 0, until dropped. Threads that it starts count for the whole process.
#[derive(Debug)]
pub(crate) struct CountsApart(());

impl CountsApart {
    pub(crate) fn begin() -> CountsApart {
        COUNTS_APART.store(true, Ordering::Relaxed);
        APART.set(Some(Vec::new()));
        CountsApart(())
    }
}

impl Drop for CountsApart {
    fn drop(&mut self) {
        APART.set(None);
    }
}

/// Returns the counter with this name, which is created by the first call. Keep the handle if there are many
/// records.
///
/// # Panics
///
/// Panics if `name` is a built-in counter, such as `MAP_INPUT_RECORDS`, or begins with `HOT_KEY `.
pub fn counter(name: &str) -> UserCounter {
    assert!(
        !CounterValues::is_reserved(name),
        "counter name {name} is reserved for a built-in counter; choose another"
    );
    let mut registry = registry();
    if let Some(known) = registry.get(name) {
        return *known;
    }
    let counter = UserCounter {
        cell: Box::leak(Box::new(AtomicU64::new(0))),
        number: registry.len(),
    };
    registry.insert(name.to_owned(), counter);
    counter
}

/// Returns all user counters of this attempt that are not zero.
pub fn user_counters() -> CounterValues {
    let mut values = CounterValues::default();
    for (name, counter) in registry().iter() {
        values.add(name, counter.get());
    }
    values
}

/// Sets all user counters of this attempt to saved values, the missing ones to zero.
pub fn set_user_counters(saved: &CounterValues) {
    let known: Vec<&str> = saved.iter().map(|(name, _)| name).collect();
    for name in known
        .into_iter()
        .filter(|name| Counter::of_word(name).is_none())
    {
        counter(name);
    }
    for (name, counter) in registry().iter() {
        counter.set(saved.get(name));
    }
}

/// Locks the counters; a panic can at worst leave an entry out.
fn registry() -> MutexGuard<'static, BTreeMap<String, UserCounter>> {
    lock(&REGISTRY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_on_threads_count_apart() {
        let seen = counter("seen by attempts on threads");
        seen.add(1);
        let counted: Vec<u64> = std::thread::scope(|threads| {
            let counting = |amount| {
                let _apart = CountsApart::begin();
                seen.add(amount);
                seen.add(amount);
                user_counters().get("seen by attempts on threads")
            };
            let started: Vec<_> = [10, 20]
                .map(|amount| threads.spawn(move || counting(amount)))
                .into();
            started
                .into_iter()
                .map(|thread| thread.join().expect("no panic"))
                .collect()
        });
        assert_eq!(counted, [20, 40]);
        assert_eq!(seen.get(), 1, "this thread counts for the process");
    }

    #[test]
    fn counter_stays_at_its_greatest_value() {
        let full = counter("full in a test");
        full.add(u64::MAX);
        full.add(2);
        assert_eq!(full.get(), u64::MAX);
        let _apart = CountsApart::begin();
        full.add(u64::MAX);
        full.add(2);
        assert_eq!(full.get(), u64::MAX);
    }

    #[test]
    fn saved_counters_are_restored_apart() {
        let _apart = CountsApart::begin();
        let kept = counter("kept in a test");
        let other = counter("other in a test");
        other.add(5);
        let mut saved = CounterValues::default();
        saved.add("kept in a test", 7);
        set_user_counters(&saved);
        assert_eq!((kept.get(), other.get()), (7, 0));
    }
}
