//! What a coordinator wants of whatever keeps its jobs that have ended.
//!
//! Owns the questions. The answers are in `files`, which programs that run a job in their own process do not compile.

use std::error::Error;
use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;

use napreduce_engine::JobId;
use napreduce_protocol::{ClusterSample, ClusterWindow, JobSummary};

use crate::ended::EndedJob;

/// How much is kept; the oldest jobs go first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryLimits {
    pub jobs_max: usize,
    /// Of heads and recordings.
    pub bytes_max: u64,
}

/// Opens the history in a directory, which is made if it is missing; in return also what is to be said of
/// what was found there.
pub type OpenHistory = fn(&Path, HistoryLimits) -> io::Result<(Arc<dyn HistoryStore>, Vec<String>)>;

/// The jobs in history: what a listing shows of each is at hand, the rest is read when it is asked for.
pub trait HistoryStore: Debug + Send + Sync {
    /// Whether a job is in it.
    fn has(&self, job: JobId) -> bool;

    /// The highest number in it.
    fn last(&self) -> Option<JobId>;

    /// The job that was submitted with this token.
    fn of_token(&self, token: u128) -> Option<JobId>;

    /// At most so many lines of a listing, newest first, but for the jobs that are left out.
    fn summaries(&self, count: usize, leave_out: &dyn Fn(JobId) -> bool) -> Vec<JobSummary>;

    /// Everything about a job; `None` when it is not there. It blocks until it is read.
    fn read(&self, job: JobId) -> Option<Result<EndedJob, String>>;

    /// Keeps a job, and removes the oldest that are too many; what could not be tidied up in return. It
    /// blocks until the job outlives a loss of power.
    ///
    /// # Errors
    /// When it cannot be kept.
    fn add(&self, job: &EndedJob) -> Result<Vec<String>, Box<dyn Error + Send + Sync>>;

    /// Keeps a look at the cluster. It blocks until whoever reads the history finds it, though it may not
    /// outlive a loss of power.
    ///
    /// # Errors
    /// When it cannot be kept.
    fn note(&self, sample: &ClusterSample) -> Result<(), Box<dyn Error + Send + Sync>>;

    /// What was kept of looks between two moments, in milliseconds since 1970. It blocks until that is read.
    fn window(&self, from_millis: u64, until_millis: u64) -> ClusterWindow;
}
