//! The limit on excluded workers: half of those with slots of a kind stay in use.

use crate::cluster::{Cluster, Worker};
use crate::ids::{TaskKind, WorkerId};
use crate::states::WorkerState;

impl Cluster {
    /// Returns whether one more worker, this one, may be excluded: half of those with slots of a kind stay in
    /// use.
    pub fn may_exclude(&self, id: WorkerId) -> bool {
        TaskKind::ALL
            .into_iter()
            .filter(|kind| self.workers[&id].slots(*kind) > 0)
            .all(|kind| {
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
        excluded
            .iter()
            .map(|(_, id)| *id)
            .find(|id| self.workers[id].slots(kind) > 0)
    }

    /// Returns how many workers with slots of a kind are excluded, and how many there are.
    fn count_up(&self, kind: TaskKind) -> (usize, usize) {
        let with_slots =
            |worker: &&Worker| worker.state() == WorkerState::Up && worker.slots(kind) > 0;
        let up = self.workers.values().filter(with_slots);
        (
            up.clone()
                .filter(|worker| worker.excluded_until().is_some())
                .count(),
            up.count(),
        )
    }
}
