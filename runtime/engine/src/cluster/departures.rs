//! Workers that leave or are lost, and their ids, which are never reused.

use crate::ids::WorkerId;
use crate::numbers::Numbers;
use crate::sorted::SortedSet;

/// The draining, lost and forgotten workers.
#[derive(Debug, Default)]
pub(crate) struct Departures {
    draining: SortedSet<WorkerId>,
    /// Lost workers that jobs still refer to.
    lost: SortedSet<WorkerId>,
    forgotten: Numbers,
    /// The forgotten workers that left after a drain.
    left: Numbers,
}

impl Departures {
    pub fn restore(forgotten: Numbers, left: Numbers) -> Departures {
        Departures {
            forgotten,
            left,
            ..Departures::default()
        }
    }

    pub fn drain(&mut self, worker: WorkerId) {
        self.draining.insert(worker);
    }

    /// Records that a worker no longer drains: it stays, left or is lost.
    pub fn end_drain(&mut self, worker: WorkerId) {
        self.draining.remove(&worker);
    }

    pub fn draining(&self) -> &SortedSet<WorkerId> {
        &self.draining
    }

    pub fn lose(&mut self, worker: WorkerId) {
        self.lost.insert(worker);
    }

    /// Returns the lost workers that are not forgotten.
    pub fn lost(&self) -> &SortedSet<WorkerId> {
        &self.lost
    }

    /// Forgets a lost worker except for its id.
    pub fn forget(&mut self, worker: WorkerId, left: bool) {
        self.lost.remove(&worker);
        self.forgotten.insert(worker.0);
        if left {
            self.left.insert(worker.0);
        }
    }

    pub fn is_forgotten(&self, worker: WorkerId) -> bool {
        self.forgotten.contains(worker.0)
    }

    /// Returns whether a forgotten worker had left after a drain, so that its loss is expected.
    pub fn has_left(&self, worker: WorkerId) -> bool {
        self.left.contains(worker.0)
    }

    /// Returns the ids of the forgotten workers, and those of them that left after a drain.
    pub fn numbers(&self) -> (Numbers, Numbers) {
        (self.forgotten.clone(), self.left.clone())
    }
}
