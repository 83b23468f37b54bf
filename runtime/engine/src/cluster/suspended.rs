//! Suspended attempts that wait for a slot of their worker.

use crate::by_kind::ByKind;
use crate::ids::{AttemptId, TaskKind, WorkerId};
use crate::sorted::{SortedMap, SortedSet};

/// The workers with waiting attempts of active jobs, and the attempts that an operator resumed.
#[derive(Debug, Default)]
pub(crate) struct Suspended {
    waiting: ByKind<SortedMap<WorkerId, u32>>,
    recalled: SortedSet<AttemptId>,
}

impl Suspended {
    /// Counts one more attempt that waits on a worker.
    pub fn add(&mut self, kind: TaskKind, worker: WorkerId) {
        *self.waiting[kind].get_or_default(worker) += 1;
    }

    /// Counts one attempt less.
    pub fn remove(&mut self, kind: TaskKind, worker: WorkerId) {
        if let Some(count) = self.waiting[kind].get_mut(&worker) {
            *count -= 1;
            if *count == 0 {
                self.waiting[kind].remove(&worker);
            }
        }
    }

    /// Records that an operator resumed an attempt, which gets the next free slot of its worker.
    pub fn recall(&mut self, attempt: AttemptId) {
        self.recalled.insert(attempt);
    }

    /// Forgets that an operator resumed an attempt, because it no longer waits.
    pub fn drop_recall(&mut self, attempt: AttemptId) {
        self.recalled.remove(&attempt);
    }

    /// Returns the waiting attempts that an operator resumed.
    pub fn recalled(&self) -> &SortedSet<AttemptId> {
        &self.recalled
    }

    /// Returns whether no attempt of a kind waits.
    pub fn is_empty(&self, kind: TaskKind) -> bool {
        self.waiting[kind].is_empty()
    }

    /// Returns whether an attempt of a kind waits on a worker.
    pub fn is_on(&self, kind: TaskKind, worker: WorkerId) -> bool {
        self.waiting[kind].contains_key(&worker)
    }

    /// Returns the workers on which attempts of a kind wait.
    pub fn workers(&self, kind: TaskKind) -> impl Iterator<Item = WorkerId> + '_ {
        self.waiting[kind].keys().copied()
    }

    /// Returns how many attempts of a kind wait on each worker.
    pub fn counts(&self, kind: TaskKind) -> &SortedMap<WorkerId, u32> {
        &self.waiting[kind]
    }
}
