//! Everything that is known of a job, and how it was to be run.
//!
//! Owns how its parts are put together and narrowed, and its settings. Does not own the parts (`summaries`,
//! `preemptions`).

use std::collections::BTreeMap;
use std::time::Duration;

use napreduce_engine::AttemptId;
use serde::{Deserialize, Serialize};

use crate::counters::CounterValues;
use crate::plan::JobPlan;
use crate::preemptions::{PreemptionSummary, RestoreSummary, ResumeSummary};
use crate::report::PartReport;
use crate::summaries::{AttemptSummary, HistoryLine, JobSummary, TaskPhase, TaskSummary};

/// Everything about a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobDetail {
    /// What a listing says.
    pub summary: JobSummary,
    /// Counters so far, or in the end.
    pub counters: CounterValues,
    /// Its part files, once it has succeeded.
    pub parts: Vec<PartReport>,
    /// Every attempt so far, in the order in which they were launched.
    pub attempts: Vec<AttemptSummary>,
    /// What happened to the job as a whole, oldest first.
    pub events: Vec<HistoryLine>,
    /// Every request to take a slot of it, oldest first.
    #[serde(default)]
    pub preemptions: Vec<PreemptionSummary>,
    /// Every continuation of a suspended attempt, likewise.
    #[serde(default)]
    pub resumes: Vec<ResumeSummary>,
    /// Every attempt that was launched from a checkpoint, likewise.
    #[serde(default)]
    pub restores: Vec<RestoreSummary>,
    /// How it was to be run; unknown of jobs that earlier versions kept.
    #[serde(default)]
    pub settings: Option<JobSettings>,
}

impl JobDetail {
    /// A job of which nothing else is known.
    pub fn new(summary: JobSummary) -> JobDetail {
        JobDetail {
            summary,
            counters: CounterValues::default(),
            parts: Vec::new(),
            attempts: Vec::new(),
            events: Vec::new(),
            preemptions: Vec::new(),
            resumes: Vec::new(),
            restores: Vec::new(),
            settings: None,
        }
    }

    /// What it knows of some of its attempts: their lives, and nothing of the job as a whole but its summary.
    #[must_use]
    pub fn of_attempts(&self, is_one: impl Fn(AttemptId) -> bool) -> JobDetail {
        fn those<T: Clone>(all: &[T], is_one: impl Fn(&T) -> bool) -> Vec<T> {
            all.iter().filter(|one| is_one(one)).cloned().collect()
        }
        JobDetail {
            attempts: those(&self.attempts, |one| is_one(one.attempt)),
            preemptions: those(&self.preemptions, |one| is_one(one.attempt)),
            resumes: those(&self.resumes, |one| is_one(one.attempt)),
            restores: those(&self.restores, |one| is_one(one.attempt)),
            ..JobDetail::new(self.summary.clone())
        }
    }

    /// Its tasks that were ever begun, as its attempts tell of them when it has ended.
    pub fn tasks_begun(&self) -> Vec<TaskSummary> {
        let mut tasks = BTreeMap::new();
        for attempt in &self.attempts {
            let task = attempt.attempt.task;
            let known = tasks.entry(task).or_insert_with(|| TaskSummary::of(task, TaskPhase::Pending, 0));
            known.attempts += 1;
            if attempt.end.as_deref() == Some("done") {
                known.state = TaskPhase::Done;
            }
        }
        tasks.into_values().collect()
    }
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
