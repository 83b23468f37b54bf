//! The history of jobs: how it grows while a job runs, what of it is kept when the job has ended, and, with the
//! feature `files`, the files it is kept in. Job programs leave the feature out and compile no compression and
//! no calendar.

mod ended;
#[cfg(feature = "files")]
mod files;
mod job_history;
mod store;

pub use ended::{EndedJob, KeptLog, RecordedCluster, WorkerGroup};
#[cfg(feature = "files")]
pub use files::*;
pub use job_history::{ENDED, ENDING, JobHistory, OPERATOR, PreemptionBook};
pub use store::{HistoryLimits, HistoryStore, OpenHistory};
