//! The client of a cluster: what submitters and the operator's binary ask of its coordinator.
//!
//! Owns the answers as plain data. Does not own how they are printed.

mod summaries;

pub use summaries::{
    AttemptSummary, HistoryLine, JobDetail, JobPhase, JobSummary, LiveAttempt, LogStream, TaskSummary,
    WorkerSummary,
};
