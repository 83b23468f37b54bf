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
//! `Lost` is final: a worker that comes back registers under a new number, so that its earlier messages
//! cannot be mistaken for new ones. A draining worker finishes its attempts and serves its outputs, gets no
//! new attempts, and leaves when none of its outputs is needed.

use serde::{Deserialize, Serialize};

use super::IllegalTransition;

listed! {
    /// The state of a worker.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum WorkerState {
        /// Not registered yet.
        Unknown,
        /// Registered; its slots are offered.
        Up,
        /// Gets no new attempts; leaves when none of its attempts or outputs is needed.
        Draining,
        /// Lost, or has left; final.
        Lost,
    }
}

listed! {
    /// An input of a worker.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum WorkerInput {
        /// It registered.
        Joined,
        /// The worker should leave.
        DrainRequested,
        /// The worker should stay.
        UndrainRequested,
        /// It was allowed to leave.
        Left,
        /// It is lost.
        Lost,
    }
}

impl WorkerState {
    /// Returns the state after `input`.
    ///
    /// # Errors
    /// Fails if the table has no row for the pair.
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
