//! The slots of a job: held by its attempts, to be given up, and promised to it.

use crate::by_kind::ByKind;
use crate::ids::{TaskKind, WorkerId};
use crate::sorted::SortedSet;

/// Counts of slots, and the workers that keep some for the job.
#[derive(Debug, Default)]
pub(crate) struct JobSlots {
    held: ByKind<u32>,
    /// Open requests for slots that it holds.
    requested: ByKind<u32>,
    /// Slots that are being freed or kept for it.
    promised: ByKind<u32>,
    reserved_on: SortedSet<WorkerId>,
}

impl JobSlots {
    pub fn occupy(&mut self, kind: TaskKind) {
        self.held[kind] += 1;
    }

    pub fn vacate(&mut self, kind: TaskKind) {
        self.held[kind] -= 1;
    }

    pub fn add_requested(&mut self, kind: TaskKind) {
        self.requested[kind] += 1;
    }

    pub fn remove_requested(&mut self, kind: TaskKind) {
        self.requested[kind] -= 1;
    }

    pub fn add_promised(&mut self, kind: TaskKind) {
        self.promised[kind] += 1;
    }

    pub fn remove_promised(&mut self, kind: TaskKind) {
        self.promised[kind] -= 1;
    }

    /// Adds a slot that a worker keeps.
    pub fn reserve(&mut self, kind: TaskKind, worker: WorkerId) {
        self.reserved_on.insert(worker);
        self.promised[kind] += 1;
    }

    /// Removes a slot that a worker kept, and the worker with the last one.
    pub fn drop_reservation(&mut self, kind: TaskKind, worker: WorkerId, is_last: bool) {
        self.promised[kind] -= 1;
        if is_last {
            self.reserved_on.remove(&worker);
        }
    }

    /// Returns how many attempts of a kind hold a slot.
    pub fn held(&self, kind: TaskKind) -> u32 {
        self.held[kind]
    }

    pub fn requested(&self, kind: TaskKind) -> u32 {
        self.requested[kind]
    }

    pub fn promised(&self, kind: TaskKind) -> u32 {
        self.promised[kind]
    }

    /// Returns the workers that keep slots for the job.
    pub fn reserved_on(&self) -> &SortedSet<WorkerId> {
        &self.reserved_on
    }
}
