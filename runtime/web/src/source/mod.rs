//! Sources of the page: a running cluster, or the files of a history. Calls block.

mod cluster;
mod fresh;
mod history;

use std::path::Path;
use std::sync::Arc;

use napreduce_engine::{AttemptId, JobChange, JobId, Reason, TaskId, WorkerId};
use napreduce_history::{JobOverview, LedgerTotals, read_cluster};
use napreduce_protocol::{
    ClusterWindow, JobCommand, JobDetail, JobSummary, LogStream, QueueListing, TaskCommand,
    TaskSummary, WorkerSummary,
};
use thiserror::Error;

pub use cluster::ClusterSource;
pub use fresh::pause_after;
pub use history::HistorySource;

/// The most bytes of a log in one response.
pub const LOG_PIECE_BYTES_MAX: u64 = 1 << 20;

/// A command of an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperatorCommand {
    KillJob(JobId),
    Job(JobId, JobCommand),
    ChangeJob(JobId, JobChange),
    Task {
        task: TaskId,
        /// Only this attempt; otherwise all live attempts that it applies to.
        attempt: Option<u32>,
        command: TaskCommand,
    },
    Drain {
        worker: WorkerId,
        /// Hand running attempts back instead of finishing them.
        hand_back: bool,
    },
    Undrain(WorkerId),
}

/// Why a source does not answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SourceError {
    /// The object does not exist.
    #[error("{0}")]
    Absent(String),
    /// The command is not possible, or not now.
    #[error("{0}")]
    Refused(String),
    /// The cluster does not answer.
    #[error("{0}")]
    Unavailable(String),
    /// The data is unreadable.
    #[error("{0}")]
    Broken(String),
}

/// A cluster or a history.
pub trait PageSource: std::fmt::Debug + Send + Sync + 'static {
    /// Its name, for people.
    fn name(&self) -> String;

    /// Whether it is running, so that it changes and accepts commands.
    fn is_live(&self) -> bool;

    /// Returns the jobs: first the current ones, then the ended ones, newest first.
    fn jobs(&self) -> Result<Arc<Vec<JobSummary>>, SourceError>;

    fn job(&self, job: JobId) -> Result<Arc<JobDetail>, SourceError>;

    /// Returns the same jobs with the totals of their preemptions.
    fn overviews(&self) -> Result<Arc<Vec<JobOverview>>, SourceError> {
        let of = |summary: &JobSummary| JobOverview {
            summary: summary.clone(),
            ledger: LedgerTotals::default(),
            cluster: None,
        };
        Ok(Arc::new(self.jobs()?.iter().map(of).collect()))
    }

    /// Includes known workers that were lost or left.
    fn workers(&self) -> Result<Arc<Vec<WorkerSummary>>, SourceError>;

    /// A history does not know the queues.
    fn queues(&self) -> Result<Arc<QueueListing>, SourceError>;

    fn tasks(&self, job: JobId) -> Result<Arc<Vec<TaskSummary>>, SourceError>;

    /// Returns the most important reason first.
    fn explain(&self, job: JobId, task: Option<TaskId>) -> Result<Vec<Reason>, SourceError>;

    /// Reads the log of an attempt from `offset` on, at most `bytes_max` bytes.
    fn log(
        &self,
        attempt: AttemptId,
        stream: LogStream,
        offset: u64,
        bytes_max: u64,
    ) -> Result<Vec<u8>, SourceError>;

    /// Carries out a command; returns the affected attempts, if any.
    fn order(&self, order: &OperatorCommand, reason: &str) -> Result<Vec<AttemptId>, SourceError>;

    /// Submits a job again; returns the new job.
    fn rerun(
        &self,
        job: JobId,
        _output: Option<&Path>,
        _reason: &str,
    ) -> Result<JobId, SourceError> {
        Err(SourceError::Refused(format!(
            "cannot rerun {job}: no running cluster is shown"
        )))
    }

    /// The directory of its history, if that is on this machine.
    fn history(&self) -> Option<&Path> {
        None
    }

    /// Samples of queues and workers between two times, in milliseconds since 1970.
    fn window(&self, from_millis: u64, until_millis: u64) -> Result<ClusterWindow, SourceError> {
        Ok(self
            .history()
            .map(|path| read_cluster(path, from_millis, until_millis))
            .unwrap_or_default())
    }

    /// Warnings about unreadable data.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }
}
