//! The state machine of a worker.
//!
//! ```text
//!               joined          lost
//!     Unknown ---------> Up ----------> Lost
//! ```
//!
//! `Lost` is final: a worker that comes back registers under a new number, so that nothing it says about its earlier
//! life can be mistaken for news.

use serde::{Deserialize, Serialize};

use super::IllegalTransition;

/// Where a worker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum WorkerState {
    /// Never heard of.
    Unknown,
    /// Registered; its slots are offered.
    Up,
    /// Gone for good.
    Lost,
}

/// What can happen to a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum WorkerInput {
    /// It registered.
    Joined,
    /// It is gone.
    Lost,
}

impl WorkerState {
    /// Every state, for tables and tests.
    pub const ALL: [WorkerState; 3] = [WorkerState::Unknown, WorkerState::Up, WorkerState::Lost];

    /// The state after `input`.
    ///
    /// # Errors
    /// When the table has no row for the pair.
    pub fn on(self, input: WorkerInput) -> Result<WorkerState, IllegalTransition> {
        match (self, input) {
            (WorkerState::Unknown, WorkerInput::Joined) => Ok(WorkerState::Up),
            (WorkerState::Up, WorkerInput::Lost) => Ok(WorkerState::Lost),
            _ => Err(IllegalTransition::new("worker", self, input)),
        }
    }
}

impl WorkerInput {
    /// Every input, for tables and tests.
    pub const ALL: [WorkerInput; 2] = [WorkerInput::Joined, WorkerInput::Lost];
}
