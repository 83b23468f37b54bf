//! The state machine of a task: a unit of a job, tried by one attempt at a time, or two if the first is slow.
//!
//! ```text
//!                  launched        +----------+     attempt done
//!     Pending ------------------>  |  Active  | ------------------> Done
//!        ^                         +----------+                       |
//!        |                          | |      ^                        |
//!        +------ attempt ended -----+ +------+ duplicate launched,    |
//!        |                                     duplicate ended        |
//!        +---------------------- output lost -------------------------+
//! ```
//!
//! `duplicate ended` means that either of two attempts ended without completing the task; `attempt ended`
//! means that the last one did. When one of two succeeds, the other is superseded and its end no longer
//! affects the task.
//!
//! Whether a pending reduce may start yet (slow-start) is decided by its job and is not a state of the task.
//! An attempt that ended without finishing (failed, killed, checkpointed, lost) makes its task pending again.

use serde::{Deserialize, Serialize};

use super::IllegalTransition;

listed! {
    /// The state of a task.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum TaskState {
        /// Waiting for a slot.
        #[default]
        Pending,
        /// One or two attempts at it are live, in any state.
        Active,
        /// One attempt completed it, and its output is available.
        Done,
    }
}

listed! {
    /// An input of a task.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum TaskInput {
        /// An attempt was ordered to start.
        Launched,
        /// A second attempt was ordered to start while the first is live.
        DuplicateLaunched,
        /// One of two attempts ended without completing the task; the other continues.
        DuplicateEnded,
        /// An attempt completed the task.
        AttemptDone,
        /// Its last live attempt ended without completing the task.
        AttemptEnded,
        /// The output of a finished map can no longer be read.
        OutputLost,
    }
}

impl TaskState {
    /// Returns the state after `input`.
    ///
    /// # Errors
    /// Fails if the table has no row for the pair.
    pub fn on(self, input: TaskInput) -> Result<TaskState, IllegalTransition> {
        match (self, input) {
            (TaskState::Pending, TaskInput::Launched) => Ok(TaskState::Active),
            (TaskState::Active, TaskInput::DuplicateLaunched | TaskInput::DuplicateEnded) => {
                Ok(TaskState::Active)
            }
            (TaskState::Active, TaskInput::AttemptDone) => Ok(TaskState::Done),
            (TaskState::Active, TaskInput::AttemptEnded) => Ok(TaskState::Pending),
            (TaskState::Done, TaskInput::OutputLost) => Ok(TaskState::Pending),
            _ => Err(IllegalTransition::new("task", self, input)),
        }
    }
}
