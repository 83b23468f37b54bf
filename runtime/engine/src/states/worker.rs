//! The state machine of a worker.
//!
//! ```text
//!               joined       drain requested           left | lost
//!     Unknown ---------> Up -----------------> Draining -------------> Lost
//!                        | ^                    |                       ^
//!                        | +- undrain requested +                       |
//!                        +---------------------- lost ------------------+
//! ```
//!
//! `Lost` is final: a worker that comes back registers under a new number, so that nothing it says about its
//! earlier life can be mistaken for news. A draining worker finishes what it runs and serves what it holds,
//! gets nothing new, and leaves when none of it is needed.

use serde::{Deserialize, Serialize};

use super::IllegalTransition;

listed! {
    /// Where a worker is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum WorkerState {
        /// Never heard of.
        Unknown,
        /// Registered; its slots are offered.
        Up,
        /// Gets no new attempts; leaves when what it has is not needed any more.
        Draining,
        /// Gone for good.
        Lost,
    }
}

listed! {
    /// What can happen to a worker.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum WorkerInput {
        /// It registered.
        Joined,
        /// Somebody wants it to leave.
        DrainRequested,
        /// Somebody wants it to stay.
        UndrainRequested,
        /// It was told that it may leave.
        Left,
        /// It is gone.
        Lost,
    }
}

impl WorkerState {
    /// The state after `input`.
    ///
    /// # Errors
    /// When the table has no row for the pair.
    pub fn on(self, input: WorkerInput) -> Result<WorkerState, IllegalTransition> {
        match (self, input) {
            (WorkerState::Unknown, WorkerInput::Joined) => Ok(WorkerState::Up),
            (WorkerState::Up | WorkerState::Draining, WorkerInput::DrainRequested) => {
                Ok(WorkerState::Draining)
            }
            (WorkerState::Draining, WorkerInput::UndrainRequested) => Ok(WorkerState::Up),
            (WorkerState::Draining, WorkerInput::Left) => Ok(WorkerState::Lost),
            (WorkerState::Up | WorkerState::Draining, WorkerInput::Lost) => Ok(WorkerState::Lost),
            _ => Err(IllegalTransition::new("worker", self, input)),
        }
    }
}
