//! What a program's job definitions implement, so that its task processes can run them.
//!
//! Owns the traits and what their calls answer. Does not own the descriptions of tasks (`napreduce-protocol`)
//! nor what the user's code sees of them (`napreduce`).

use napreduce_protocol::{MapTask, PartOutput, ReduceTask, TaskError};
use serde::{Deserialize, Serialize};

use crate::context::TaskContext;

/// The job definitions of one program, by name.
///
/// A task process calls it once, before its map or reduce call. The example of `napreduce-local` is a
/// whole program.
pub trait Definitions {
    /// Builds the job that `definition` names from its encoded parameters.
    ///
    /// An unknown name or parameters that cannot be decoded are the task's own fault.
    fn build(&self, definition: &str, parameters: &[u8]) -> Result<Box<dyn TaskRunner>, TaskError>;
}

/// A task as one object with a few coarse calls; the loops over records are monomorphised behind them. The
/// example of `napreduce-local` implements it.
pub trait TaskRunner {
    /// Reads one split and writes a sealed segment file, or a part file when the job is map-only, to
    /// `task.output`.
    fn run_map(&self, task: &MapTask, context: &TaskContext) -> Result<MapResult, TaskError>;

    /// Merges one partition of all `task.inputs` and writes a part file to `task.output`.
    fn run_reduce(&self, task: &ReduceTask, context: &TaskContext) -> Result<ReduceResult, TaskError>;
}

/// What a call answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ended<T> {
    /// It came to the end of its task.
    Done {
        /// The part file.
        part: T,
    },
    /// It was asked to, and saved what it has done; another attempt goes on from there.
    Checkpointed(SavedCheckpoint),
}

/// What a map call answers; it writes a part file when the job is map-only.
pub type MapResult = Ended<Option<PartOutput>>;

/// What a reduce call answers.
pub type ReduceResult = Ended<PartOutput>;

/// A checkpoint that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedCheckpoint {
    /// Bytes of all files that were made for it; those of earlier checkpoints that it names are not
    /// among them.
    pub bytes: u64,
}
