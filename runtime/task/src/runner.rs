//! The traits that a program's job definitions implement, so that its task processes can run them.

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
    /// # Errors
    /// Fails for an unknown name or invalid parameters, as the task's own fault.
    fn build(&self, definition: &str, parameters: &[u8]) -> Result<Box<dyn TaskRunner>, TaskError>;
}

/// A task as one object with a few coarse calls; the loops over records are monomorphised behind them. The
/// example of `napreduce-local` implements it.
pub trait TaskRunner {
    /// Reads one split and writes a sealed segment file, or a part file when the job is map-only, to
    /// `task.output`.
    fn run_map(&self, task: &MapTask, context: &TaskContext) -> Result<MapResult, TaskError>;

    /// Merges one partition of all `task.inputs` and writes a part file to `task.output`.
    fn run_reduce(
        &self,
        task: &ReduceTask,
        context: &TaskContext,
    ) -> Result<ReduceResult, TaskError>;
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ended<T> {
    /// The task is complete.
    Done {
        /// The part file.
        part: T,
    },
    /// The work was saved on request; another attempt continues from it.
    Checkpointed(SavedCheckpoint),
}

/// The result of a map call; it contains a part file if the job is map-only.
pub type MapResult = Ended<Option<PartOutput>>;

/// The result of a reduce call.
pub type ReduceResult = Ended<PartOutput>;

/// A checkpoint that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedCheckpoint {
    /// Bytes of all files written for it, without those of earlier checkpoints that it refers to.
    pub bytes: u64,
}
