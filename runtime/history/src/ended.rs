//! Ended jobs as plain data, and the interface of the history that stores them. `files` implements it; programs with
//! an embedded run do not compile that.

use std::error::Error;
use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;

use napreduce_engine::{AttemptId, JobId};
use napreduce_protocol::{
    ClusterSample, ClusterWindow, JobDetail, JobEnd, JobSummary, SchedulerTables,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A job that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedJob {
    /// The submission token: a job that is submitted twice is one job.
    pub token: u128,
    /// The answer to the submitter.
    pub end: JobEnd,
    /// The answer to all other clients.
    pub detail: JobDetail,
    /// The cluster that the job ran on; `None` if an earlier version wrote the job.
    pub cluster: Option<RecordedCluster>,
    /// Saved logs of failed attempts.
    pub logs: Vec<KeptLog>,
}

/// The standard error output of a failed attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptLog {
    pub attempt: AttemptId,
    /// The last lines; if earlier ones were cut, the first line reports that.
    pub stderr: Arc<str>,
}

/// A snapshot of a cluster at the end of a job. Policies are stored as configuration values, so that a head stays
/// readable when policies change.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordedCluster {
    /// Name of the policy.
    pub scheduler: String,
    /// `[scheduler.NAME]` of policies with values other than the published ones; `None` if too long for a head.
    pub tables: Option<Value>,
    /// `[preemption]`
    pub preemption: Value,
    pub workers: Vec<WorkerGroup>,
}

/// A number of workers with the same slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WorkerGroup {
    pub workers: u32,
    pub map_slots: u32,
    pub reduce_slots: u32,
}

impl RecordedCluster {
    /// Size limit of the tables: a head needs room for the rest.
    const TABLES_BYTES_MAX: usize = 16 << 10;

    /// Returns the scheduler with its tables as JSON.
    pub fn in_force(&self) -> SchedulerTables {
        let tables = serde_json::json!({ "scheduler": self.tables, "preemption": self.preemption });
        SchedulerTables {
            name: self.scheduler.clone(),
            tables: tables.to_string(),
        }
    }

    /// Drops tables that are too long, and all but 64 worker groups.
    #[must_use]
    pub fn bounded(mut self) -> RecordedCluster {
        let fits = |tables: &Value| tables.to_string().len() <= RecordedCluster::TABLES_BYTES_MAX;
        self.tables = self.tables.filter(fits);
        self.workers.truncate(64);
        self
    }
}

/// Limits of a history; the oldest jobs are removed first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryLimits {
    pub jobs_max: usize,
    /// Size of heads and recordings.
    pub bytes_max: u64,
}

/// Opens the history in a directory, which is created if missing; returns it and warnings.
pub type OpenHistory = fn(&Path, HistoryLimits) -> io::Result<(Arc<dyn HistoryStore>, Vec<String>)>;

/// The history of ended jobs. Listing rows are in memory; everything else is read on request.
pub trait HistoryStore: Debug + Send + Sync {
    fn has(&self, job: JobId) -> bool;

    /// Returns the job with the highest number.
    fn last(&self) -> Option<JobId>;

    /// Returns the job that was submitted with this token.
    fn of_token(&self, token: u128) -> Option<JobId>;

    /// Returns up to `count` listing rows, newest first, without the jobs that `leave_out` selects.
    fn summaries(&self, count: usize, leave_out: &dyn Fn(JobId) -> bool) -> Vec<JobSummary>;

    /// Reads a job; `None` if it does not exist. Blocks.
    fn read(&self, job: JobId) -> Option<Result<EndedJob, String>>;

    /// Stores a job and removes the oldest ones above the limits; returns warnings. Blocks until the job is on
    /// disk.
    ///
    /// # Errors
    /// Fails if the job cannot be stored.
    fn add(&self, job: &EndedJob) -> Result<Vec<String>, Box<dyn Error + Send + Sync>>;

    /// Stores a sample of the cluster. Blocks until readers see it; it may not survive a power loss.
    ///
    /// # Errors
    /// Fails if the sample cannot be stored.
    fn note(&self, sample: &ClusterSample) -> Result<(), Box<dyn Error + Send + Sync>>;

    /// Reads the samples between two times, in milliseconds since 1970. Blocks.
    fn window(&self, from_millis: u64, until_millis: u64) -> ClusterWindow;
}
