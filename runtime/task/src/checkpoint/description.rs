//! The content of a checkpoint: the progress of the attempt and the files with its data.

use napreduce_data::{SavedCollection, SavedReduceInput};
use napreduce_engine::AttemptId;
use napreduce_protocol::{CounterValues, InputSplit};
use serde::{Deserialize, Serialize};

/// The data from which another attempt of the same task continues.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The attempt that saved it.
    pub attempt: AttemptId,
    /// The stage of its work.
    pub stage: CheckpointStage,
    /// The output so far, in order. Like all names here, theirs are relative to the directory of all
    /// checkpoints.
    pub pieces: Vec<OutputPiece>,
    /// Counters so far, including user counters.
    pub counters: CounterValues,
    /// Active time of this attempt and its predecessors, in milliseconds, without suspensions.
    pub active_millis: u64,
    /// State of the user code; `None` if it keeps none.
    #[serde(skip)]
    pub user_state: Option<Vec<u8>>,
    /// State of the output format.
    #[serde(skip)]
    pub format_state: Vec<u8>,
}

impl Checkpoint {
    /// Returns the number of input records done.
    pub fn records(&self) -> u64 {
        match &self.stage {
            CheckpointStage::Map { records, .. } => *records,
            CheckpointStage::FetchInputs { .. } => 0,
            CheckpointStage::Reducing { position, .. } => position.statistics().records,
        }
    }
}

/// The stage of an attempt's work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum CheckpointStage {
    /// A map, before a record of its split.
    Map {
        /// The input of the map.
        split: InputSplit,
        /// Index of the current part of the split.
        part: u32,
        /// The offset in that part at which the reader resumes.
        offset: u64,
        /// Number of records from that offset that are already done.
        repeated: u64,
        /// Records read.
        records: u64,
        /// Records emitted.
        emitted: u64,
        /// The collected records; `None` if the map writes a part file.
        collection: Option<SavedCollection>,
    },
    /// A reduce that waits for inputs.
    FetchInputs {
        /// The inputs fetched so far, in map order.
        fetched: Vec<FetchedInput>,
    },
    /// A reduce, between two groups, or between two values of one.
    Reducing {
        /// All inputs, in map order.
        inputs: Vec<NeededInput>,
        /// The position of their merge.
        position: SavedReduceInput,
        /// Whether the current group has more values.
        in_group: bool,
    },
}

/// A fetched map output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchedInput {
    /// The map attempt that produced it.
    pub attempt: AttemptId,
    /// The sealed file.
    pub file: String,
    /// Its length.
    pub bytes: u64,
}

/// The part of a map output that is still needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeededInput {
    /// The map attempt that produced it; positions apply to its output only.
    pub attempt: AttemptId,
    /// The first block still needed; `None` if none is.
    pub first_block: Option<u64>,
}

/// A piece of a part file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputPiece {
    /// The file.
    pub file: String,
    /// Its length.
    pub bytes: u64,
    /// Number of records in it.
    pub records: u64,
    /// xxh3-64 of its bytes.
    pub digest: u64,
}
