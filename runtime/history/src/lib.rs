//! The history of jobs: how it grows while a job runs, and what of it is kept when the job has ended.
//!
//! Owns what is known of a job that has ended, how that follows from the records of the engine, and what a
//! coordinator wants of whatever keeps it. Does not own the jobs, nor their files.

mod ended;
mod job_history;
mod store;

pub use ended::{EndedJob, KeptLog, RecordedCluster, WorkerGroup};
pub use job_history::{ENDED, ENDING, JobHistory, OPERATOR, PreemptionBook};
pub use store::{HistoryLimits, HistoryStore, OpenHistory};
