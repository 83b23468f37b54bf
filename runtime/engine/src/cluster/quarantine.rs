//! Workers that get no attempts because many failed there, and tasks that run alone because workers died
//! while they ran. Half of the workers with slots of a kind are never excluded.

use std::collections::BTreeSet;

use crate::cluster::{Cluster, Worker};
use crate::ids::{TaskId, TaskKind, WorkerId};
use crate::states::WorkerState;
use crate::time::Time;

/// The excluded workers, and the tasks that run alone with the worker that is kept for them.
#[derive(Debug, Default)]
pub(crate) struct Quarantine {
    /// By the end of the exclusion.
    excluded: BTreeSet<(Time, WorkerId)>,
    isolated: BTreeSet<TaskId>,
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
    pub fn excluded(&self) -> &BTreeSet<(Time, WorkerId)> {
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
    pub fn isolated(&self) -> &BTreeSet<TaskId> {
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

impl Cluster {
    /// Returns whether one more worker, this one, may be excluded: half of those with slots of a kind stay in
    /// use.
    pub fn may_exclude(&self, id: WorkerId) -> bool {
        TaskKind::ALL.into_iter().filter(|kind| self.workers[&id].slots(*kind) > 0).all(|kind| {
            let (excluded, up) = self.count_up(kind);
            (excluded + 1) * 2 <= up
        })
    }

    /// Returns the worker whose exclusion ends first, if more than half are excluded because others were
    /// lost.
    pub fn one_too_many_excluded(&self) -> Option<WorkerId> {
        let excluded = self.quarantine.excluded();
        if excluded.is_empty() {
            return None;
        }
        let too_many = |kind: &TaskKind| {
            let (excluded, up) = self.count_up(*kind);
            excluded * 2 > up
        };
        let kind = TaskKind::ALL.into_iter().find(too_many)?;
        excluded.iter().map(|(_, id)| *id).find(|id| self.workers[id].slots(kind) > 0)
    }

    /// Returns how many workers with slots of a kind are excluded, and how many there are.
    fn count_up(&self, kind: TaskKind) -> (usize, usize) {
        let with_slots = |worker: &&Worker| worker.state == WorkerState::Up && worker.slots(kind) > 0;
        let up = self.workers.values().filter(with_slots);
        (up.clone().filter(|worker| worker.excluded_until().is_some()).count(), up.count())
    }
}
