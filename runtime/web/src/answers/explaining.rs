//! Why a job or a task does not get on.
//!
//! Owns the names of the fields. Does not own what is explained (the coordinator).

use napreduce_engine::{JobId, Reason, TaskId};
use schemars::JsonSchema;
use serde::Serialize;

/// Why a job does not get on.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct JobExplanation {
    pub job: String,
    /// Sentences, the most telling one first.
    pub lines: Vec<String>,
    /// The same, each with its kind.
    pub reasons: Vec<ReasonAnswer>,
}

impl JobExplanation {
    /// What is said of a job.
    pub fn of(job: JobId, reasons: &[Reason]) -> JobExplanation {
        JobExplanation { job: job.to_string(), lines: lines(reasons), reasons: coded(reasons) }
    }
}

/// Why a task does not get on.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TaskExplanation {
    pub task: String,
    /// Likewise.
    pub lines: Vec<String>,
    /// Likewise.
    pub reasons: Vec<ReasonAnswer>,
}

impl TaskExplanation {
    /// What is said of a task.
    pub fn of(task: TaskId, reasons: &[Reason]) -> TaskExplanation {
        TaskExplanation { task: task.to_string(), lines: lines(reasons), reasons: coded(reasons) }
    }
}

/// One reason.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ReasonAnswer {
    /// Its kind, such as `all-slots-taken`, `held-by-operator` or `remedy`.
    pub code: &'static str,
    /// A sentence, for people.
    pub text: String,
    /// Whether it says why something waits, rather than where it is or what to do.
    pub is_why: bool,
}

impl From<&Reason> for ReasonAnswer {
    fn from(reason: &Reason) -> ReasonAnswer {
        ReasonAnswer { code: reason.code.in_words(), text: reason.text.clone(), is_why: reason.code.is_why() }
    }
}

fn lines(reasons: &[Reason]) -> Vec<String> {
    reasons.iter().map(|reason| reason.text.clone()).collect()
}

fn coded(reasons: &[Reason]) -> Vec<ReasonAnswer> {
    reasons.iter().map(ReasonAnswer::from).collect()
}
