//! Sources of the page: a running cluster, or the files of a history. Calls block.

mod cluster;
mod fresh;
mod history;

use std::path::Path;
use std::sync::Arc;

use napreduce_engine::{AttemptId, JobId, Reason, TaskId};
use napreduce_history::{JobOverview, LedgerTotals, read_cluster};
use napreduce_protocol::requests::{
    ChangeJob, CommandJob, CommandTask, DrainWorker, KillJob, UndrainWorker,
};
use napreduce_protocol::{
    ClusterWindow, JobDetail, JobSummary, LogStream, QueueListing, TaskSummary, WorkerSummary,
};
use thiserror::Error;

pub use cluster::ClusterSource;
pub use fresh::pause_after;
pub use history::HistorySource;

/// The most bytes of a log in one response.
pub const LOG_PIECE_BYTES_MAX: u64 = 1 << 20;

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

    /// Kills a job. A source that is not live refuses this and every other command.
    fn kill_job(&self, _: KillJob) -> Result<(), SourceError> {
        Err(not_live())
    }

    fn command_job(&self, _: CommandJob) -> Result<(), SourceError> {
        Err(not_live())
    }

    fn change_job(&self, _: ChangeJob) -> Result<(), SourceError> {
        Err(not_live())
    }

    /// Returns the affected attempts.
    fn command_task(&self, _: CommandTask) -> Result<Vec<AttemptId>, SourceError> {
        Err(not_live())
    }

    fn drain_worker(&self, _: DrainWorker) -> Result<(), SourceError> {
        Err(not_live())
    }

    fn undrain_worker(&self, _: UndrainWorker) -> Result<(), SourceError> {
        Err(not_live())
    }

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

/// The error for commands, which need a running cluster.
fn not_live() -> SourceError {
    SourceError::Refused("this is a history; commands need a running cluster".to_owned())
}
