//! What a caller chooses once per reduce task: segments, memory and paths.
//!
//! Owns the plain settings. Does not own how memory is divided (`budget`).

use std::path::PathBuf;

use crate::partition::Grouping;
use crate::reduce::SavedReduceInput;

/// What is worth reading into memory: mapping a file costs more than to copy so many bytes.
pub const READ_MAX: u64 = 64 << 10;

/// Settings of one reduce task's input.
#[derive(Debug, Clone)]
pub struct ReduceSettings {
    /// One sealed segment per map task, in the order of the map tasks: it decides the order of equal keys.
    pub segments: Vec<PathBuf>,
    /// Files in which some of the segments were put together (`consolidate`). What is small in them is read
    /// from there; one that is of no use is done without.
    pub consolidated: Vec<PathBuf>,
    pub partition: u32,
    /// Bytes of memory for everything the input holds. As little as 1 MiB works, slowly; less counts as 1
    /// MiB.
    pub memory: usize,
    /// An existing directory for intermediate merges, this task's alone. Emptied of them
    /// when the input is dropped.
    pub scratch: PathBuf,
    /// The attempt's id, for the headers of intermediate merges and for errors. At most 4096 bytes.
    pub label: String,
    /// The most segments merged at once, unless all are in memory; less than 2 counts as 2.
    pub fan_in: usize,
    /// A segment with at most so many bytes of the partition is read into memory, while a quarter of `memory`
    /// lasts, and then neither opened files nor `fan_in` bound how many there may be. See [`READ_MAX`].
    pub read_max: u64,
    /// The prefix of a key that defines its group; the whole key without one.
    pub grouping: Option<Grouping>,
    /// Where an input was saved, and the directory of checkpoints, that the names in it are relative to. The
    /// same groups, values and order follow, and nothing before is read again. When a group was begun,
    /// `group_key` is its key, `next_value` gives what is left of its values and `next_group` skips them. A
    /// segment may begin with any block up to the one that is needed next
    /// (`SavedReduceInput::blocks_needed`).
    pub resume: Option<(SavedReduceInput, PathBuf)>,
}
