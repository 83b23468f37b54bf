//! The state machine of a task: one unit of a job, tried by one attempt at a time.
//!
//! ```text
//!                  launched                 attempt done
//!     Pending ------------------> Active ------------------> Done
//!        ^                          |                          |
//!        +------ attempt ended -----+                          |
//!        +---------------------- output lost ------------------+
//! ```
//!
//! Whether a pending reduce may start yet (slow-start) is a question to its job, not a state of the task. An attempt
//! that ended without finishing (failed, killed, checkpointed, lost) makes its task pending again.

use serde::{Deserialize, Serialize};

use super::IllegalTransition;

/// Where a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TaskState {
    /// Waits for a slot.
    Pending,
    /// An attempt at it is live: running, stopped, or on its way to either.
    Active,
    /// One attempt did it, and its output is there.
    Done,
}

/// What can happen to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TaskInput {
    /// An attempt was ordered to start.
    Launched,
    /// Its attempt did the task.
    AttemptDone,
    /// Its attempt ended without doing the task.
    AttemptEnded,
    /// The output of a finished map cannot be read any more.
    OutputLost,
}

impl TaskState {
    /// Every state, for tables and tests.
    pub const ALL: [TaskState; 3] = [TaskState::Pending, TaskState::Active, TaskState::Done];

    /// The state after `input`.
    ///
    /// # Errors
    /// When the table has no row for the pair.
    pub fn on(self, input: TaskInput) -> Result<TaskState, IllegalTransition> {
        match (self, input) {
            (TaskState::Pending, TaskInput::Launched) => Ok(TaskState::Active),
            (TaskState::Active, TaskInput::AttemptDone) => Ok(TaskState::Done),
            (TaskState::Active, TaskInput::AttemptEnded) => Ok(TaskState::Pending),
            (TaskState::Done, TaskInput::OutputLost) => Ok(TaskState::Pending),
            _ => Err(IllegalTransition::new("task", self, input)),
        }
    }
}

impl TaskInput {
    /// Every input, for tables and tests.
    pub const ALL: [TaskInput; 4] =
        [TaskInput::Launched, TaskInput::AttemptDone, TaskInput::AttemptEnded, TaskInput::OutputLost];
}
