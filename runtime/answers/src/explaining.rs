//! Explanations why a job or a task makes no progress, and why a job is slow.

use napreduce_engine::{JobId, Reason, TaskId};
use schemars::JsonSchema;
use serde::Serialize;

use super::findings::FindingAnswer;

/// Why a job makes no progress, and what makes or made it slow.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct JobExplanation {
    pub job: String,
    /// Sentences, the most important one first.
    pub lines: Vec<String>,
    /// The same with their codes.
    pub reasons: Vec<ReasonAnswer>,
    /// The reasons why it is or was slow.
    pub findings: Vec<FindingAnswer>,
}

impl JobExplanation {
    pub fn new(job: JobId, reasons: &[Reason], findings: Vec<FindingAnswer>) -> JobExplanation {
        JobExplanation {
            job: job.to_string(),
            lines: lines(reasons),
            reasons: coded(reasons),
            findings,
        }
    }
}

/// Why a task makes no progress.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TaskExplanation {
    pub task: String,
    /// Sentences, the most important one first.
    pub lines: Vec<String>,
    /// The same with their codes.
    pub reasons: Vec<ReasonAnswer>,
}

impl TaskExplanation {
    pub fn of(task: TaskId, reasons: &[Reason]) -> TaskExplanation {
        TaskExplanation {
            task: task.to_string(),
            lines: lines(reasons),
            reasons: coded(reasons),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ReasonAnswer {
    /// Such as `all-slots-taken`, `held-by-operator` or `remedy`.
    pub code: &'static str,
    /// The sentence.
    pub text: String,
    /// Whether it is a cause of waiting, rather than a state or a remedy.
    pub is_why: bool,
}

impl From<&Reason> for ReasonAnswer {
    fn from(reason: &Reason) -> ReasonAnswer {
        ReasonAnswer {
            code: reason.code.in_words(),
            text: reason.text.clone(),
            is_why: reason.code.is_why(),
        }
    }
}

fn lines(reasons: &[Reason]) -> Vec<String> {
    reasons.iter().map(|reason| reason.text.clone()).collect()
}

fn coded(reasons: &[Reason]) -> Vec<ReasonAnswer> {
    reasons.iter().map(ReasonAnswer::from).collect()
}
