//! Where answers come from: a cluster that runs, or files of one that ran.
//!
//! Owns what can be asked, and how it fails. Calls block. Does not own how answers are written (`answers`).

mod cluster;
mod fresh;
mod history;

use std::path::Path;
use std::sync::Arc;

use napreduce_engine::{AttemptId, JobId, Reason, TaskId, WorkerId};
use napreduce_history::{JobOverview, LedgerTotals, read_cluster};
use napreduce_protocol::{
    ClusterWindow, JobCommand, JobDetail, JobSummary, LogStream, QueueListing, TaskCommand, TaskSummary,
    WorkerSummary,
};
use thiserror::Error;

pub use cluster::ClusterSource;
pub use fresh::pause_after;
pub use history::HistorySource;

/// Bytes of a log in one answer, at most.
pub const LOG_PIECE_BYTES_MAX: u64 = 1 << 20;

/// Something an operator orders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperatorCommand {
    KillJob(JobId),
    Job(JobId, JobCommand),
    Task {
        task: TaskId,
        /// This attempt alone; without a number, all live attempts that it can be done to.
        attempt: Option<u32>,
        command: TaskCommand,
    },
    Drain {
        worker: WorkerId,
        /// Give back what runs, rather than finish it.
        hand_back: bool,
    },
    Undrain(WorkerId),
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SourceError {
    /// There is no such thing.
    #[error("{0}")]
    Absent(String),
    /// It cannot be done, or not now.
    #[error("{0}")]
    Refused(String),
    /// Nobody answers at present.
    #[error("{0}")]
    Unavailable(String),
    /// What is there cannot be read.
    #[error("{0}")]
    Broken(String),
}

/// What answers.
pub trait PageSource: std::fmt::Debug + Send + Sync + 'static {
    /// Which cluster it is, for people.
    fn name(&self) -> String;

    /// Whether it runs: then things change, and can be ordered.
    fn is_live(&self) -> bool;

    /// The jobs that have not ended, then those that have, newest first.
    fn jobs(&self) -> Result<Arc<Vec<JobSummary>>, SourceError>;

    fn job(&self, job: JobId) -> Result<Arc<JobDetail>, SourceError>;

    /// The same jobs, and what is known of the preemptions of each without all of its history.
    fn overviews(&self) -> Result<Arc<Vec<JobOverview>>, SourceError> {
        let of = |summary: &JobSummary| JobOverview {
            summary: summary.clone(),
            ledger: LedgerTotals::default(),
            cluster: None,
        };
        Ok(Arc::new(self.jobs()?.iter().map(of).collect()))
    }

    /// Those that are gone, too, as far as they are remembered.
    fn workers(&self) -> Result<Arc<Vec<WorkerSummary>>, SourceError>;

    /// The queues of its scheduler; of a history nothing is known of them.
    fn queues(&self) -> Result<Arc<QueueListing>, SourceError>;

    fn tasks(&self, job: JobId) -> Result<Arc<Vec<TaskSummary>>, SourceError>;

    /// The most telling reason first.
    fn explain(&self, job: JobId, task: Option<TaskId>) -> Result<Vec<Reason>, SourceError>;

    /// What an attempt wrote, from `offset` on, at most so many bytes.
    fn log(
        &self,
        attempt: AttemptId,
        stream: LogStream,
        offset: u64,
        bytes_max: u64,
    ) -> Result<Vec<u8>, SourceError>;

    /// Has something done. Returns when that is ordered; which attempts it is about, where it is about some.
    fn order(&self, order: &OperatorCommand, reason: &str) -> Result<Vec<AttemptId>, SourceError>;

    /// The directory of its history, if that is on this machine.
    fn history(&self) -> Option<&Path> {
        None
    }

    /// How queues and workers were between two moments, in milliseconds since 1970.
    fn window(&self, from_millis: u64, until_millis: u64) -> Result<ClusterWindow, SourceError> {
        Ok(self.history().map(|path| read_cluster(path, from_millis, until_millis)).unwrap_or_default())
    }

    /// What could not be read, and is left out.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }
}
