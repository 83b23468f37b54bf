//! The racks and their workers.

use crate::ids::WorkerId;
use crate::sorted::SortedMap;

/// Replaces the name of a rack while it has workers.
pub(crate) type RackNumber = u32;

/// The racks of the workers that are not lost.
#[derive(Debug, Default, Clone)]
pub(crate) struct Racks {
    of: SortedMap<WorkerId, RackNumber>,
    /// The number and the worker count of each rack, by name.
    names: SortedMap<String, (RackNumber, u32)>,
    last: RackNumber,
}

impl Racks {
    pub fn enter(&mut self, worker: WorkerId, name: &str) {
        let next = self.last + 1;
        let (number, workers) = self.names.get_or_insert_with(name.to_owned(), || (next, 0));
        *workers += 1;
        self.last = self.last.max(*number);
        self.of.insert(worker, *number);
    }

    pub fn leave(&mut self, worker: WorkerId) {
        let Some(rack) = self.of.remove(&worker) else {
            return;
        };
        self.names.retain(|_, (number, workers)| {
            *workers -= u32::from(*number == rack);
            *workers > 0
        });
    }

    /// Returns whether there is more than one rack.
    pub fn are_several(&self) -> bool {
        self.names.len() > 1
    }

    pub fn of(&self, worker: WorkerId) -> Option<RackNumber> {
        self.of.get(&worker).copied()
    }

    pub fn name_of(&self, worker: WorkerId) -> Option<&str> {
        let rack = self.of(worker)?;
        self.names
            .iter()
            .find(|(_, (number, _))| *number == rack)
            .map(|(name, _)| name.as_str())
    }

    pub fn workers(&self) -> impl Iterator<Item = &WorkerId> {
        self.of.keys()
    }
}
