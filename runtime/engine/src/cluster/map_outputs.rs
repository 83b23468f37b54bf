//! The outputs of a job's maps for its reduces: where they are, how many are lost, and their bytes.

use crate::ids::WorkerId;
use crate::sorted::SortedSet;

/// The available outputs by worker, and the sums over all maps.
#[derive(Debug, Default)]
pub(crate) struct MapOutputs {
    held: SortedSet<(WorkerId, u32)>,
    /// Maps whose output was lost and has not been produced again.
    lost: u32,
    /// Bytes that finished maps wrote for reduces.
    bytes: u64,
}

impl MapOutputs {
    /// Adds the output of a finished map, which may replace a lost one.
    pub fn add(&mut self, map: u32, holder: WorkerId, bytes: u64, was_lost: bool) {
        self.held.insert((holder, map));
        self.bytes = self.bytes.saturating_add(bytes);
        self.lost -= u32::from(was_lost);
    }

    /// Removes a lost output.
    pub fn lose(&mut self, map: u32, holder: Option<WorkerId>, bytes: u64) {
        if let Some(holder) = holder {
            self.held.remove(&(holder, map));
        }
        self.bytes = self.bytes.saturating_sub(bytes);
        self.lost += 1;
    }

    /// Counts a map of a snapshot whose output is lost.
    pub fn restore_lost(&mut self) {
        self.lost += 1;
    }

    /// Records that an output was copied to storage that outlives its worker.
    pub fn move_to_storage(&mut self, map: u32, holder: WorkerId) {
        self.held.remove(&(holder, map));
        self.held.insert((WorkerId::STORAGE, map));
    }

    /// Returns the maps whose output is on a worker.
    pub fn on(&self, holder: WorkerId) -> impl Iterator<Item = u32> + '_ {
        self.held
            .range((holder, 0)..=(holder, u32::MAX))
            .map(|(_, map)| *map)
    }

    /// Returns the available outputs, by worker.
    pub fn held(&self) -> &SortedSet<(WorkerId, u32)> {
        &self.held
    }

    /// Returns how many outputs are lost.
    pub fn lost(&self) -> u32 {
        self.lost
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
