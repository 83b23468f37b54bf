//! Commands of operators to tasks and jobs, and their outcomes.

use napreduce_engine::listed;
use serde::{Deserialize, Serialize};

listed! {
    /// A command to an attempt.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum TaskCommand {
        /// Stops it in place. It keeps its memory and gives up its slot until it is resumed.
        Suspend = "suspend",
        /// Resumes a suspended attempt when a slot of its worker is free.
        Resume = "resume",
        /// Saves its work and ends it; the task continues from there on any worker.
        Checkpoint = "checkpoint",
        /// Ends it and discards its work; the task is rerun, and this does not count as a failure.
        Kill = "kill",
    }
}

listed! {
    /// A command to a job, other than killing and changing it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum JobCommand {
        /// Suspends its running attempts and starts nothing until it is resumed.
        Suspend = "suspend",
        /// Resumes it.
        Resume = "resume",
        /// Starts nothing until it is released; running attempts finish.
        Hold = "hold",
        /// Releases a held job.
        Release = "release",
    }
}

/// The outcome of a command to an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommandOutcome {
    /// Ordered; the result is not known yet.
    Pending,
    /// Waits for a free slot, as a resumed attempt may for a long time.
    Queued,
    /// Done and verified: the process is stopped, or the checkpoint is complete.
    Done,
    /// Not possible, for this reason; the attempt continues.
    Refused(String),
    /// Another event came first, such as `finished`.
    Overtaken(String),
}
