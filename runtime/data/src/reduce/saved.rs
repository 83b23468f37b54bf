//! Where a reduce task stands in its input: what a later attempt goes on from.
//!
//! Owns this description. Does not own how the sources are opened at it (`sources`) nor the file that it is
//! written to, which is the caller's.

use serde::{Deserialize, Serialize};

use crate::reduce::ReduceStatistics;
use crate::saved::SavedFile;

/// The data of a reduce task's checkpoint: positions, and the files of intermediate merges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedReduceInput {
    pub(super) partition: u32,
    /// How many inputs the task has.
    pub(super) inputs: u32,
    /// Those that are not read to their end, in the order of the map tasks.
    pub(super) sources: Vec<SavedSource>,
    pub(super) statistics: ReduceStatistics,
    /// What the keys of the group begun last share: what is left of its values comes first.
    pub(super) group: Option<Vec<u8>>,
}

/// One source of the merge and the record that comes next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SavedSource {
    /// The segment of one map task.
    Input {
        /// Which one, in the order of `ReduceSettings::segments`.
        index: u32,
        /// The attempt that wrote it: that of another attempt may hold other records in another order.
        label: String,
        /// The block, counted in the partition.
        block: u64,
        /// The record, counted in the partition.
        ordinal: u64,
        /// The number of records in the partition.
        records: u64,
    },
    /// An intermediate merge of several of them.
    Merged {
        file: SavedFile,
        /// The block, counted in the partition.
        block: u64,
        /// The record, counted in the partition.
        ordinal: u64,
    },
}

impl SavedReduceInput {
    /// The inputs that are still to be read, by their place in `ReduceSettings::segments`, and the first
    /// block of the partition that is needed of each. Paths of other inputs are not looked at any more.
    pub fn blocks_needed(&self) -> impl Iterator<Item = (usize, u64)> {
        self.sources.iter().filter_map(|source| match source {
            SavedSource::Input { index, block, .. } => Some((*index as usize, *block)),
            SavedSource::Merged { .. } => None,
        })
    }

    /// The files that it names.
    pub fn files(&self) -> impl Iterator<Item = &SavedFile> {
        self.sources.iter().filter_map(|source| match source {
            SavedSource::Merged { file, .. } => Some(file),
            SavedSource::Input { .. } => None,
        })
    }

    pub fn statistics(&self) -> &ReduceStatistics {
        &self.statistics
    }
}
