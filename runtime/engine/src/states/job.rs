//! The state machine of a job.
//!
//! ```text
//!               succeeded | failed | kill requested              drained
//!     Active ----------------------------------------> Stopping ---------> Ended
//! ```
//!
//! `Stopping` means that the outcome is decided and the live attempts are being killed; the first decision
//! stands. A successful job may have live attempts too: a map that is rerun for its lost output is no longer
//! needed once the last reduce is done.

use serde::{Deserialize, Serialize};

use super::IllegalTransition;

listed! {
    /// The state of a job.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum JobState {
        /// Its tasks are being run.
        Active,
        /// Its outcome is decided; it ends when its last attempt has ended.
        Stopping,
        /// Ended; it has no attempts left.
        Ended,
    }
}

listed! {
    /// The displayed state of a job that has not ended.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Standing {
        /// It has tasks to do, and none of them has a slot.
        Waiting = "waiting",
        /// At least one of its attempts holds a slot.
        Running = "running",
        /// An operator holds it: nothing more is launched; what runs may finish.
        Held = "held",
        /// An operator suspended it, or every task that it started is suspended.
        Suspended = "suspended",
        /// Its outcome is decided; its last attempts are ending.
        Stopping = "stopping",
    }
}

listed! {
    /// An input of a job.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum JobInput {
        /// Every required task is done.
        Succeeded,
        /// A task failed too often, or fatally.
        Failed,
        /// The job should be killed.
        KillRequested,
        /// None of its attempts is left.
        Drained,
    }
}

impl JobState {
    /// Returns the state after `input`.
    ///
    /// # Errors
    /// Fails if the table has no row for the pair.
    pub fn on(self, input: JobInput) -> Result<JobState, IllegalTransition> {
        match (self, input) {
            (
                JobState::Active,
                JobInput::Succeeded | JobInput::Failed | JobInput::KillRequested,
            ) => Ok(JobState::Stopping),
            // The job is ending already. If it has succeeded, it is killed nevertheless.
            (JobState::Stopping, JobInput::KillRequested) => Ok(JobState::Stopping),
            (JobState::Stopping, JobInput::Drained) => Ok(JobState::Ended),
            _ => Err(IllegalTransition::new("job", self, input)),
        }
    }
}
