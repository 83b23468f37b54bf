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
        /// What it reads.
        split: InputSplit,
        /// Which part of it, from 0.
        part: u32,
        /// Where the reader of that goes on.
        offset: u64,
        /// How many of the records that it finds there are done already.
        repeated: u64,
        /// Records read.
        records: u64,
        /// Records emitted.
        emitted: u64,
        /// What was collected; `None` where the map writes a part file.
        collection: Option<SavedCollection>,
    },
    /// A reduce that still waits for inputs: those that were fetched.
    FetchInputs {
        /// In the order of their map tasks.
        fetched: Vec<FetchedInput>,
    },
    /// A reduce, between two groups, or between two values of one.
    Reducing {
        /// All inputs, in the order of their map tasks.
        inputs: Vec<NeededInput>,
        /// Where the merge of them stands.
        position: SavedReduceInput,
        /// Whether the group begun last goes on.
        in_group: bool,
    },
}

/// A map output that was fetched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchedInput {
    /// The attempt that made it.
    pub attempt: AttemptId,
    /// The sealed file.
    pub file: String,
    /// Its length.
    pub bytes: u64,
}

/// The part of a map output that is still needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeededInput {
    /// The attempt that made it; positions apply to its output only.
    pub attempt: AttemptId,
    /// The first block still needed; `None` if none is.
    pub first_block: Option<u64>,
}

/// A part of a part file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputPiece {
    /// The file.
    pub file: String,
    /// Its length.
    pub bytes: u64,
    /// Records that were written when it ended, since the one before it.
    pub records: u64,
    /// xxh3-64 of its bytes.
    pub digest: u64,
}
