//! The state machine of a job.
//!
//! ```text
//!               succeeded | failed | kill requested              drained
//!     Active ----------------------------------------> Stopping ---------> Ended
//! ```
//!
//! `Stopping` means that the outcome is decided and the live attempts are being killed; the first decision
//! stands. Even a successful job may pass through it with live attempts: a map that runs again because its
//! output was lost is no longer needed once the last reduce is done.

use serde::{Deserialize, Serialize};

use super::IllegalTransition;

listed! {
    /// Where a job is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum JobState {
        /// Its tasks are tried.
        Active,
        /// Its outcome is decided; it ends when the last of its attempts is gone.
        Stopping,
        /// Over; none of its attempts is left.
        Ended,
    }
}

listed! {
    /// What can happen to a job.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum JobInput {
        /// Every task that still matters is done.
        Succeeded,
        /// A task failed too often, or fatally.
        Failed,
        /// Somebody wants it ended.
        KillRequested,
        /// None of its attempts is left.
        Drained,
    }
}

impl JobState {
    /// The state after `input`.
    ///
    /// # Errors
    /// When the table has no row for the pair.
    pub fn on(self, input: JobInput) -> Result<JobState, IllegalTransition> {
        match (self, input) {
            (JobState::Active, JobInput::Succeeded | JobInput::Failed | JobInput::KillRequested) => {
                Ok(JobState::Stopping)
            }
            // Too late, or asked twice; either way it is ending.
            (JobState::Stopping, JobInput::KillRequested) => Ok(JobState::Stopping),
            (JobState::Stopping, JobInput::Drained) => Ok(JobState::Ended),
            _ => Err(IllegalTransition::new("job", self, input)),
        }
    }
}
