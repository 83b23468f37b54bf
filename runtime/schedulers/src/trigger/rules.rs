//! The rules of the trigger scheduler.

use std::fmt;

use napreduce_engine::{Ratio, TaskKind, Time, WorkerId};

/// `when CONDITIONS do ACTIONS`. Fires once, or with `repeat` each time its conditions become true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub conditions: Vec<Condition>,
    pub actions: Vec<RuleAction>,
    /// Fire each time the conditions become true.
    pub repeat: bool,
}

/// A job by name, or one of its tasks: `low`, `low/m0`, `low/r3`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// The name of the job; the last one submitted if there are several.
    pub job: String,
    /// The task; all tasks if `None`.
    pub task: Option<(TaskKind, u32)>,
}

/// A condition of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// The simulated or real time is at least this.
    Time(Time),
    /// The completed fraction is at least this; for a job, the mean over its tasks.
    Progress(Target, Ratio),
    /// The job has been submitted.
    Submitted(Target),
    /// The task, or any task of the job, has been launched.
    Started(Target),
    /// The task is suspended; for a job, at least one task is, and none holds a slot.
    Suspended(Target),
    /// The task or job has finished.
    Finished(Target),
}

/// An action of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleAction {
    /// Ask the driver to submit a job.
    Submit(String),
    /// Launch pending tasks, on a worker if given.
    Launch(Target, Option<WorkerId>),
    /// Suspend running tasks and hold them.
    Suspend(Target),
    /// Resume suspended tasks.
    Resume(Target),
    /// Kill running tasks and hold them.
    Kill(Target),
    /// Checkpoint running tasks and hold them.
    Checkpoint(Target),
    /// Launch none of these tasks until released.
    Hold(Target),
    /// Lift a hold.
    Release(Target),
}

impl Target {
    /// Whether it matches a task of a job with this name.
    pub fn names(&self, job: &str, kind: TaskKind, index: u32) -> bool {
        self.job == job && self.task.is_none_or(|task| task == (kind, index))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.task {
            None => f.write_str(&self.job),
            Some((TaskKind::Map, index)) => write!(f, "{}/m{index}", self.job),
            Some((TaskKind::Reduce, index)) => write!(f, "{}/r{index}", self.job),
        }
    }
}

impl fmt::Display for RuleAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuleAction::Submit(name) => write!(f, "submit({name})"),
            RuleAction::Launch(target, None) => write!(f, "launch({target})"),
            RuleAction::Launch(target, Some(worker)) => write!(f, "launch({target} on {worker})"),
            RuleAction::Suspend(target) => write!(f, "suspend({target})"),
            RuleAction::Resume(target) => write!(f, "resume({target})"),
            RuleAction::Kill(target) => write!(f, "kill({target})"),
            RuleAction::Checkpoint(target) => write!(f, "checkpoint({target})"),
            RuleAction::Hold(target) => write!(f, "hold({target})"),
            RuleAction::Release(target) => write!(f, "release({target})"),
        }
    }
}
