//! Workers that get no attempts because many failed there, and tasks that run alone because workers died
//! while they ran.

use crate::ids::{TaskId, WorkerId};
use crate::sorted::SortedSet;
use crate::time::Time;

/// The excluded workers, and the tasks that run alone with the worker that is kept for them.
#[derive(Debug, Default)]
pub(crate) struct Quarantine {
    /// By the end of the exclusion.
    excluded: SortedSet<(Time, WorkerId)>,
    isolated: SortedSet<TaskId>,
    cleared: Option<WorkerId>,
}

impl Quarantine {
    pub fn exclude(&mut self, worker: WorkerId, until: Time) {
        self.excluded.insert((until, worker));
    }

    pub fn end_exclusion(&mut self, worker: WorkerId, until: Time) {
        self.excluded.remove(&(until, worker));
    }

    /// Returns the excluded workers with the ends of their exclusions, earliest first.
    pub fn excluded(&self) -> &SortedSet<(Time, WorkerId)> {
        &self.excluded
    }

    pub fn isolate(&mut self, task: TaskId) {
        self.isolated.insert(task);
    }

    /// Clears a task of suspicion.
    pub fn release(&mut self, task: TaskId) {
        self.isolated.remove(&task);
    }

    /// Keeps only the isolated tasks for which `kept` returns true.
    pub fn retain_isolated(&mut self, kept: impl Fn(&TaskId) -> bool) {
        self.isolated.retain(kept);
    }

    /// Returns the tasks that run alone.
    pub fn isolated(&self) -> &SortedSet<TaskId> {
        &self.isolated
    }

    /// Returns the worker that is kept free for a task that runs alone.
    pub fn cleared(&self) -> Option<WorkerId> {
        self.cleared
    }

    /// Keeps another worker free, or none; returns the previous one.
    pub fn clear(&mut self, worker: Option<WorkerId>) -> Option<WorkerId> {
        std::mem::replace(&mut self.cleared, worker)
    }
}
