//! A job that has ended, as plain data.
//!
//! Owns what is known of it beside what clients are told. Does not own its form in files (`head`, `recording`).

use std::sync::Arc;

use napreduce_engine::AttemptId;
use napreduce_protocol::{JobDetail, JobEnd};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A job that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedJob {
    /// Of its submission: one that is handed in twice is one job.
    pub token: u128,
    /// What its submitter is told.
    pub end: JobEnd,
    /// What everybody else is told.
    pub detail: JobDetail,
    /// The cluster that it ran on; unknown of jobs that an earlier version kept.
    pub cluster: Option<RecordedCluster>,
    /// What attempts that failed have printed, as far as it was kept.
    pub logs: Vec<KeptLog>,
}

/// What an attempt that failed has printed on standard error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptLog {
    pub attempt: AttemptId,
    /// The end of it, where it was long; then its first line says so.
    pub stderr: Arc<str>,
}

/// A cluster as it was when a job of it ended. What describes the policy is kept as its configuration file
/// would say it, so that a head can be read whatever becomes of the policies.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordedCluster {
    /// The name of the policy.
    pub scheduler: String,
    /// `[scheduler.NAME]` of the policies whose values are not the published ones; nothing when that is too
    /// long for a head.
    pub tables: Option<Value>,
    /// `[preemption]`
    pub preemption: Value,
    /// The workers that were there.
    pub workers: Vec<WorkerGroup>,
}

/// Workers that have equal slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WorkerGroup {
    pub workers: u32,
    pub map_slots: u32,
    pub reduce_slots: u32,
}

impl RecordedCluster {
    /// Bytes of tables at most: a head has to have room for the rest.
    const TABLES_BYTES_MAX: usize = 16 << 10;

    /// Leaves out tables that are too long.
    #[must_use]
    pub fn bounded(mut self) -> RecordedCluster {
        let long = |tables: &Value| tables.to_string().len() > RecordedCluster::TABLES_BYTES_MAX;
        self.tables = self.tables.filter(|tables| !long(tables));
        self.workers.truncate(64);
        self
    }
}
