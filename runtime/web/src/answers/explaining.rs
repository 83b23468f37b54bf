//! Why a job or a task does not get on.
//!
//! Owns the names of the fields. Does not own what is explained (the coordinator).

use napreduce_engine::{JobId, Reason, TaskId};

answer! {
    /// Why a job does not get on.
    pub struct JobExplanation {
        pub job: String = job.to_string(),
        /// Sentences, the most telling one first.
        pub lines: Vec<String> = lines(reasons),
        /// The same, each with its kind.
        pub reasons: Vec<ReasonAnswer> = coded(reasons),
    }

    /// What is said of a job.
    pub fn of(job: JobId, reasons: &[Reason]);
}

answer! {
    /// Why a task does not get on.
    pub struct TaskExplanation {
        pub task: String = task.to_string(),
        /// Likewise.
        pub lines: Vec<String> = lines(reasons),
        /// Likewise.
        pub reasons: Vec<ReasonAnswer> = coded(reasons),
    }

    /// What is said of a task.
    pub fn of(task: TaskId, reasons: &[Reason]);
}

answer! {
    /// One reason.
    pub struct ReasonAnswer from |reason: &Reason| {
        /// Its kind, such as `all-slots-taken`, `held-by-operator` or `remedy`.
        pub code: &'static str = reason.code.in_words(),
        /// A sentence, for people.
        pub text: String = reason.text.clone(),
        /// Whether it says why something waits, rather than where it is or what to do.
        pub is_why: bool = reason.code.is_why(),
    }
}

fn lines(reasons: &[Reason]) -> Vec<String> {
    reasons.iter().map(|reason| reason.text.clone()).collect()
}

fn coded(reasons: &[Reason]) -> Vec<ReasonAnswer> {
    reasons.iter().map(ReasonAnswer::from).collect()
}
