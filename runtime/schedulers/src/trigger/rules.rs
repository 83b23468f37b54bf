//! The rules of the trigger scheduler as data.
//!
//! Owns what can be said in a rule. Does not own the text of a rule (`text`) nor what follows from it (the
//! policy).

use std::fmt;

use napreduce_engine::{Ratio, TaskKind, Time, WorkerId};

/// `when CONDITIONS do ACTIONS`, at most once unless `repeat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// All of them must hold.
    pub conditions: Vec<Condition>,
    /// Taken in this order.
    pub actions: Vec<Deed>,
    /// Each time the conditions come to hold, not only the first.
    pub repeat: bool,
}

/// A job by its name, or one of its tasks: `low`, `low/m0`, `low/r3`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// The name the job was submitted with; of several, the last one submitted.
    pub job: String,
    /// Which task; all of them, without.
    pub task: Option<(TaskKind, u32)>,
}

/// What can be waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// The clock shows at least this.
    Time(Time),
    /// The work is done to this share; of a job: the mean over its tasks.
    Progress(Target, Ratio),
    /// The job is there, or was.
    Submitted(Target),
    /// It has been launched, or some task of the job has.
    Started(Target),
    /// It is suspended, or some task of the job is and none holds a slot.
    Suspended(Target),
    /// It is done, or the job is over.
    Finished(Target),
}

/// What can be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// Have the driver submit the job of this name.
    Submit(String),
    /// Launch what is pending, on this worker if one is named.
    Launch(Target, Option<WorkerId>),
    /// Suspend what runs; it stays so until it is resumed here.
    Suspend(Target),
    /// Resume what is suspended.
    Resume(Target),
    /// Kill what runs; it stays so until it is launched here.
    Kill(Target),
    /// Checkpoint what runs; it stays so until it is launched here.
    Checkpoint(Target),
    /// Launch none of it from now on.
    Hold(Target),
    /// Launch it like everything else again.
    Release(Target),
}

impl Target {
    /// Whether it is this task of a job of this name.
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

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Deed::Submit(name) => write!(f, "submit({name})"),
            Deed::Launch(target, None) => write!(f, "launch({target})"),
            Deed::Launch(target, Some(worker)) => write!(f, "launch({target} on {worker})"),
            Deed::Suspend(target) => write!(f, "suspend({target})"),
            Deed::Resume(target) => write!(f, "resume({target})"),
            Deed::Kill(target) => write!(f, "kill({target})"),
            Deed::Checkpoint(target) => write!(f, "checkpoint({target})"),
            Deed::Hold(target) => write!(f, "hold({target})"),
            Deed::Release(target) => write!(f, "release({target})"),
        }
    }
}
