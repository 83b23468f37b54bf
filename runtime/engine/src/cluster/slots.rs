//! Slots of workers: the totals, and the workers with free slots in the order of offers.

use std::cmp::Reverse;

use crate::by_kind::ByKind;
use crate::cluster::free_workers::FreeWorkers;
use crate::cluster::worker::Worker;
use crate::ids::TaskKind;

/// The slots of all workers.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    free: ByKind<FreeWorkers>,
    /// Slots of the workers that take attempts, and the free ones among them.
    total: ByKind<u64>,
    total_free: ByKind<u64>,
    /// Held slots of all workers.
    held: ByKind<u32>,
}

impl Slots {
    /// Updates the totals and the order of free workers after a worker started or stopped taking attempts.
    pub fn list(&mut self, worker: &mut Worker) {
        for kind in TaskKind::ALL {
            let free = worker.free(kind);
            let slots = worker.slots(kind);
            let takes = worker.takes_attempts();
            let before = worker.set_listed(kind, takes);
            if takes && free > 0 {
                self.free[kind].insert((Reverse(free), worker.id()));
            } else {
                self.free[kind].remove(&(Reverse(free), worker.id()));
            }
            if takes && !before {
                self.total[kind] += u64::from(slots);
                self.total_free[kind] += u64::from(free);
            } else if !takes && before {
                self.total[kind] -= u64::from(slots);
                self.total_free[kind] -= u64::from(free);
            }
        }
    }

    /// Takes a slot of a worker.
    pub fn occupy(&mut self, worker: &mut Worker, kind: TaskKind) {
        self.change_used(worker, kind, |used| used + 1);
        self.held[kind] += 1;
    }

    /// Returns a slot of a worker.
    pub fn vacate(&mut self, worker: &mut Worker, kind: TaskKind) {
        self.change_used(worker, kind, |used| used - 1);
        self.held[kind] -= 1;
    }

    /// Counts a slot that is held by an attempt of a snapshot; the worker is listed later.
    pub fn restore_held(&mut self, worker: &mut Worker, kind: TaskKind) {
        worker.set_used(kind, worker.used(kind) + 1);
        self.held[kind] += 1;
    }

    fn change_used(&mut self, worker: &mut Worker, kind: TaskKind, change: impl Fn(u32) -> u32) {
        let before = worker.free(kind);
        worker.set_used(kind, change(worker.used(kind)));
        let after = worker.free(kind);
        let up = worker.takes_attempts();
        for &kind in kinds_with(worker, kind) {
            if worker.is_listed(kind) {
                self.total_free[kind] =
                    self.total_free[kind] + u64::from(after) - u64::from(before);
            }
            if up && after > 0 {
                self.free[kind].insert((Reverse(after), worker.id()));
            }
            if after != before {
                self.free[kind].remove(&(Reverse(before), worker.id()));
            }
        }
    }

    /// Returns the workers that take attempts and have free slots of a kind.
    pub fn free(&self, kind: TaskKind) -> &FreeWorkers {
        &self.free[kind]
    }

    /// Returns how many slots of a kind the workers that take attempts have.
    pub fn total(&self, kind: TaskKind) -> u64 {
        self.total[kind]
    }

    /// Returns how many of those are free, including reserved ones.
    pub fn total_free(&self, kind: TaskKind) -> u64 {
        self.total_free[kind]
    }

    /// Returns how many slots of each kind are held on all workers.
    pub fn held(&self) -> ByKind<u32> {
        self.held
    }
}

/// Returns the kinds whose free slots change together with a kind's.
fn kinds_with(worker: &Worker, kind: TaskKind) -> &'static [TaskKind] {
    match (worker.shares_slots(), kind) {
        (true, _) => &TaskKind::ALL,
        (false, TaskKind::Map) => &[TaskKind::Map],
        (false, TaskKind::Reduce) => &[TaskKind::Reduce],
    }
}
