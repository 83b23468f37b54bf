//! The state machine of a task: one unit of a job, tried by one attempt at a time, or two when the
//! first is slow.
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
//! `duplicate ended` is the end of either of two attempts, without doing the task; `attempt ended` that of
//! the last one. When one of two is done the other one is superseded: from then on its end means nothing to
//! the task.
//!
//! Whether a pending reduce may start yet (slow-start) is a question to its job, not a state of the task. An
//! attempt that ended without finishing (failed, killed, checkpointed, lost) makes its task pending again.

use serde::{Deserialize, Serialize};

use super::IllegalTransition;

listed! {
    /// Where a task is.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum TaskState {
        /// Waits for a slot.
        #[default]
        Pending,
        /// One attempt at it is live, or two: running, stopped, or on their way to either.
        Active,
        /// One attempt did it, and its output is there.
        Done,
    }
}

listed! {
    /// What can happen to a task.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum TaskInput {
        /// An attempt was ordered to start.
        Launched,
        /// A second attempt was ordered to start, beside the first.
        DuplicateLaunched,
        /// One of two attempts ended without doing the task; the other one goes on.
        DuplicateEnded,
        /// An attempt did the task.
        AttemptDone,
        /// Its last live attempt ended without doing the task.
        AttemptEnded,
        /// The output of a finished map cannot be read any more.
        OutputLost,
    }
}

impl TaskState {
    /// The state after `input`.
    ///
    /// # Errors
    /// When the table has no row for the pair.
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
