//! The history of jobs: its growth while a job runs, the data of ended jobs, and, with the feature `files`, their
//! files. Job programs leave the feature out and need no compression and no calendar.

mod ended;
#[cfg(feature = "files")]
mod files;
mod job_history;

pub use ended::{
    EndedJob, HistoryLimits, HistoryStore, KeptLog, OpenHistory, RecordedCluster, WorkerGroup,
};
#[cfg(feature = "files")]
pub use files::*;
pub use job_history::{ENDED, ENDING, JobHistory, OPERATOR, PreemptionBook};
