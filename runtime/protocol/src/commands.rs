//! What an operator can have done to tasks and jobs, and what becomes of it.
//!
//! Owns the words. Does not own the carrying out (`core`, the worker).

use napreduce_engine::listed;
use serde::{Deserialize, Serialize};

listed! {
    /// What an operator can have done to an attempt.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum TaskCommand {
        /// Stop it where it is. It keeps its memory, gives up its slot, and goes on when it is told to.
        Suspend = "suspend",
        /// Let a suspended one go on when a slot of its worker is free.
        Resume = "resume",
        /// Save its work and end it; the task goes on from there, on whichever worker has a slot.
        Checkpoint = "checkpoint",
        /// End it and lose its work; the task is run again, and it counts as no failure.
        Kill = "kill",
    }
}

listed! {
    /// What an operator can have done to a job, beside ending and changing it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum JobCommand {
        /// Suspend what runs of it, and start nothing of it until it is resumed.
        Suspend = "suspend",
        /// Let it go on.
        Resume = "resume",
        /// Start nothing of it until it is released; what runs of it is let finish.
        Hold = "hold",
        /// Let a held one go on.
        Release = "release",
    }
}

/// What has become of a command to an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommandOutcome {
    /// It is ordered, and nothing is known yet.
    Pending,
    /// It waits for a free slot, which may take any time: a resumed attempt does.
    Queued,
    /// It is done, as far as it can be known: a stop is verified, a checkpoint is complete.
    Done,
    /// It could not be done, for this reason; the attempt goes on.
    Refused(String),
    /// Something else happened first, such as `finished`.
    Overtaken(String),
}
