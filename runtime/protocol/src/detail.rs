//! The full details of a job and its settings.

use std::collections::BTreeMap;
use std::time::Duration;

use napreduce_engine::AttemptId;
use serde::{Deserialize, Serialize};

use crate::counters::CounterValues;
use crate::plan::JobPlan;
use crate::preemptions::{PreemptionSummary, RestoreSummary, ResumeSummary};
use crate::report::PartReport;
use crate::submitted::{SchedulerTables, Submitted};
use crate::summaries::{AttemptSummary, HistoryLine, JobSummary, TaskPhase, TaskSummary};

/// Everything about a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobDetail {
    /// The listing's entry.
    pub summary: JobSummary,
    /// Counters so far, or final ones.
    pub counters: CounterValues,
    /// Its part files, if it has succeeded.
    pub parts: Vec<PartReport>,
    /// Every attempt so far, in launch order.
    pub attempts: Vec<AttemptSummary>,
    /// Events of the job as a whole, oldest first.
    pub events: Vec<HistoryLine>,
    /// Every preemption request, oldest first.
    #[serde(default)]
    pub preemptions: Vec<PreemptionSummary>,
    /// Every resume of a suspended attempt, oldest first.
    #[serde(default)]
    pub resumes: Vec<ResumeSummary>,
    /// Every attempt restored from a checkpoint, oldest first.
    #[serde(default)]
    pub restores: Vec<RestoreSummary>,
    /// Its settings; `None` for jobs recorded by earlier versions.
    #[serde(default)]
    pub settings: Option<JobSettings>,
    /// How it was submitted; `None` for jobs recorded by earlier versions.
    #[serde(default)]
    pub submitted: Option<Submitted>,
    /// The scheduler when the job ended; `None` before, and for jobs recorded by earlier versions.
    #[serde(default)]
    pub scheduler: Option<SchedulerTables>,
}

impl JobDetail {
    /// Creates the details of a job of which only the summary is known.
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
            submitted: None,
            scheduler: None,
        }
    }

    /// Narrows the details to some attempts: drops everything about the whole job but its summary.
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

    /// Lists the tasks of an ended job that were ever started, derived from its attempts.
    pub fn tasks_begun(&self) -> Vec<TaskSummary> {
        let mut tasks = BTreeMap::new();
        for attempt in &self.attempts {
            let task = attempt.attempt.task;
            let known = tasks.entry(task).or_insert_with(|| TaskSummary::of(task, TaskPhase::Waiting, 0));
            known.attempts += 1;
            if attempt.has_succeeded() {
                known.state = TaskPhase::Succeeded;
            }
        }
        tasks.into_values().collect()
    }
}

/// The settings of a job.
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
    /// Returns a plan's settings.
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
