//! Pauses of jobs and holds of attempts: no policy can launch or resume what is paused or held.

use serde::{Deserialize, Serialize};

/// The effect of a pause on a job's attempts, and the party that ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PauseKind {
    /// Running attempts may finish. An operator releases the job.
    Hold,
    /// Running attempts are suspended; those that cannot be suspended may finish. An operator resumes the
    /// job.
    Suspend,
    /// Like `Suspend`. The coordinator resumes the job when its output directory can be reached again.
    OutputUnreachable,
}

/// A pause of a job: none of its attempts is launched or resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    pub kind: PauseKind,
    /// The requester and the reason, for people.
    pub reason: String,
}

/// An operator's command that is in force for an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Hold {
    /// It stays suspended until an operator resumes it.
    Suspend,
    /// It gets the next free slot of its worker.
    Resume,
}
