//! The settings, statistics and saved position of a reduce task's input.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::partition::Grouping;
use crate::saved::SavedFile;

/// Segments up to this size are read: mapping a file costs more than copying that many bytes.
pub const READ_MAX: u64 = 64 << 10;

/// Settings of one reduce task's input.
#[derive(Debug, Clone)]
pub struct ReduceSettings {
    /// One sealed segment per map task. Their order is the order of equal keys.
    pub segments: Vec<PathBuf>,
    /// Files that `consolidate` made of some of the segments. Small segments are read from there; an unusable
    /// file is ignored.
    pub consolidated: Vec<PathBuf>,
    pub partition: u32,
    /// Memory limit of the input in bytes, at least 1 MiB. Little memory is slow, but works.
    pub memory: usize,
    /// This task's existing directory for intermediate merges, which are removed when the input is dropped.
    pub scratch: PathBuf,
    /// The attempt's id, for the headers of intermediate merges and for errors; at most 4096 bytes.
    pub label: String,
    /// The most segments merged at once, unless all are in memory; at least 2.
    pub fan_in: usize,
    /// Segments with at most this many bytes of the partition are read into memory, up to a quarter of `memory`.
    /// Then neither open files nor `fan_in` limit their number. See [`READ_MAX`].
    pub read_max: u64,
    /// The prefix of a key that defines its group; default: the whole key.
    pub grouping: Option<Grouping>,
    /// A saved position, and the checkpoint directory that its file names are relative to. The input continues
    /// with the same groups and values in the same order. If a group was started, `group_key` is its key,
    /// `next_value` returns its remaining values and `next_group` skips them. A segment may start with any block
    /// up to the next one needed (`SavedReduceInput::blocks_needed`).
    pub resume: Option<(SavedReduceInput, PathBuf)>,
}

/// Progress of a reduce task. A resumed task continues the saved counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReduceStatistics {
    /// Groups started.
    pub groups: u64,
    /// Records read, including those that the reducer skipped.
    pub records: u64,
    /// Key and value bytes of these records.
    pub bytes: u64,
    /// Records of this partition in all inputs.
    pub records_total: u64,
    /// Encoded bytes of this partition in all inputs, before compression.
    pub bytes_total: u64,
    /// Records written by intermediate merges.
    pub merged_records: u64,
    pub intermediate_merges: u64,
    /// Stored bytes of the blocks that this attempt read, including intermediate merges. Not continued after a
    /// resume.
    pub bytes_read: u64,
    /// Peak of granted memory, in bytes.
    pub memory_peak: usize,
}

/// The data of a reduce task's checkpoint: positions, and the files of intermediate merges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedReduceInput {
    pub(super) partition: u32,
    /// Number of inputs.
    pub(super) inputs: u32,
    /// The sources that are not read to their end, in the order of the map tasks.
    pub(super) sources: Vec<SavedSource>,
    pub(super) statistics: ReduceStatistics,
    /// The key or prefix of the current group, whose remaining values come first.
    pub(super) group: Option<Vec<u8>>,
}

/// One source of the merge and its next record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SavedSource {
    /// A map task's segment.
    Input {
        /// Index in `ReduceSettings::segments`.
        index: u32,
        /// The attempt that wrote it: another attempt may write other records in another order.
        label: String,
        /// Block number in the partition.
        block: u64,
        /// Record number in the partition.
        ordinal: u64,
        /// Records in the partition.
        records: u64,
    },
    /// An intermediate merge of several segments.
    Merged {
        file: SavedFile,
        /// Block number in the partition.
        block: u64,
        /// Record number in the partition.
        ordinal: u64,
    },
}

impl SavedReduceInput {
    /// Returns the unread inputs by their index in `ReduceSettings::segments`, with the first block that is
    /// needed of each. Paths of other inputs are no longer used.
    pub fn blocks_needed(&self) -> impl Iterator<Item = (usize, u64)> {
        self.sources.iter().filter_map(|source| match source {
            SavedSource::Input { index, block, .. } => Some((*index as usize, *block)),
            SavedSource::Merged { .. } => None,
        })
    }

    /// Returns the files of intermediate merges.
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
