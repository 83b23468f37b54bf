//! What a checkpoint says: how far the attempt was, and in which files the rest of it is.
//!
//! Owns the plain data. Does not own its form on disk (`file`).

use napreduce_data::{SavedCollection, SavedReduceInput};
use napreduce_engine::AttemptId;
use napreduce_protocol::{CounterValues, InputSplit};
use serde::{Deserialize, Serialize};

/// All that another attempt of the same task needs to go on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Who saved it.
    pub attempt: AttemptId,
    /// Where in its work the attempt was.
    pub stage: CheckpointStage,
    /// The output so far, in order. Names are relative to the directory of all checkpoints, as all
    /// names here are.
    pub pieces: Vec<OutputPiece>,
    /// What was counted so far, the user's own counters included.
    pub counters: CounterValues,
    /// How long this attempt and those before it have worked, in milliseconds, without the time they
    /// were suspended.
    pub active_millis: u64,
    /// What the user's code saved; `None` where it keeps no state.
    #[serde(skip)]
    pub user_state: Option<Vec<u8>>,
    /// What the output format saved.
    #[serde(skip)]
    pub format_state: Vec<u8>,
}

impl Checkpoint {
    /// How many records of its input were done.
    pub fn records(&self) -> u64 {
        match &self.stage {
            CheckpointStage::Map { records, .. } => *records,
            CheckpointStage::FetchInputs { .. } => 0,
            CheckpointStage::Reducing { position, .. } => position.statistics().records,
        }
    }
}

/// Where in its work an attempt was.
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
    /// Who made it.
    pub attempt: AttemptId,
    /// The sealed file.
    pub file: String,
    /// Its length.
    pub bytes: u64,
}

/// What is still needed of one map output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeededInput {
    /// Who made it: positions are those in this attempt's output and no other's.
    pub attempt: AttemptId,
    /// The first block that is still needed; `None` when nothing of it is.
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
