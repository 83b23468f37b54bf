//! A job that has ended, as plain data.
//!
//! Owns what is known of it beside what clients are told. Does not own its form in files (`head`, `rows`).

use std::time::Duration;

use napreduce_protocol::{JobDetail, JobEnd, JobPlan};
use serde::{Deserialize, Serialize};

/// A job that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedJob {
    /// Of its submission: one that is handed in twice is one job.
    pub token: u128,
    /// What its submitter is told.
    pub end: JobEnd,
    /// What everybody else is told.
    pub detail: JobDetail,
    /// How it was to be run; unknown of jobs that an earlier version kept.
    pub settings: Option<JobSettings>,
}

/// How a job was to be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobSettings {
    pub definition: String,
    pub reduces: u32,
    pub attempts_max: u32,
    pub task_memory: u64,
    pub compress: bool,
    pub overwrite: bool,
    pub durable: bool,
    pub slowstart_permille: u32,
    pub task_timeout: Duration,
    pub deadline: Option<Duration>,
    pub checkpoint_maps: bool,
    pub checkpoint_reduces: bool,
}

impl Default for JobSettings {
    fn default() -> JobSettings {
        JobSettings::of(&JobPlan::new("", ""))
    }
}

impl JobSettings {
    /// Those of a plan.
    pub fn of(plan: &JobPlan) -> JobSettings {
        JobSettings {
            definition: plan.definition.clone(),
            reduces: plan.reduces,
            attempts_max: plan.attempts_max,
            task_memory: plan.task_memory,
            compress: plan.compress,
            overwrite: plan.overwrite,
            durable: plan.durable,
            slowstart_permille: plan.slowstart_permille,
            task_timeout: plan.task_timeout,
            deadline: plan.deadline,
            checkpoint_maps: plan.checkpoint.map,
            checkpoint_reduces: plan.checkpoint.reduce,
        }
    }
}
