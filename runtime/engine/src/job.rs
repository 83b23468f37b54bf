//! A job's request to the engine and its possible outcomes. Paths, parameters and formats are opaque to the
//! engine and stay with the runtime.

use serde::{Deserialize, Serialize};

use crate::ids::{TaskKind, WorkerId};
use crate::time::Time;

/// The number of attempts of each kind that a worker runs at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slots {
    pub map: u32,
    pub reduce: u32,
}

/// One map task of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapSpec {
    /// Bytes of input.
    pub bytes: u64,
    /// Workers that hold the input, if any.
    pub preferred: Vec<WorkerId>,
}

/// The role of a job, if jobs have masters. Only in the simulator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum JobPart {
    /// A job without a master.
    #[default]
    Whole,
    /// A master: its only map holds a container until the job that it manages has ended.
    Master,
    /// A job that is managed by a master and submitted when the master has started.
    Managed,
}

/// A job's request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSpec {
    /// For people.
    pub name: String,
    /// The submitting user.
    pub user: String,
    pub queue: String,
    /// Higher is more important.
    pub priority: i32,
    /// When it should be done, if it has a deadline.
    pub deadline: Option<Time>,
    /// Its map tasks in order; may be empty.
    pub maps: Vec<MapSpec>,
    /// Number of reduce tasks; zero makes it map-only.
    pub reduces: u32,
    /// Number of failures of a task that fails the job; at least 1.
    pub attempts_max: u32,
    /// Reduces become eligible when this many thousandths of the maps are done (0..=1000).
    pub slowstart_permille: u32,
    /// The task kinds whose work cannot be saved: their code has state but does not implement saving it.
    #[serde(default)]
    pub unsaved: Vec<TaskKind>,
    /// Bytes of memory that one task needs; zero if unknown.
    #[serde(default)]
    pub memory: u64,
    /// Whether map outputs can be copied to storage that outlives the workers.
    #[serde(default)]
    pub outputs_move: bool,
}

/// The error of an invalid job specification.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobSpecError {
    /// `attempts_max` is zero.
    #[error("attempts_max must be at least 1")]
    NoAttempts,
    /// The slow-start share is above 1000.
    #[error("invalid slowstart_permille {0} (limit 1000)")]
    Slowstart(u32),
    /// Task numbers are 32 bits wide.
    #[error("too many map tasks: {0} (limit {max}); use larger splits", max = u32::MAX)]
    TooManyMaps(usize),
}

impl JobSpec {
    /// Checks that the engine can run a job like this; call it before submitting, so that the submitter gets
    /// the error.
    ///
    /// # Errors
    /// Reports the value that is out of bounds. The engine fails an invalid job immediately if it is
    /// submitted anyway.
    pub fn check(&self) -> Result<(), JobSpecError> {
        if self.attempts_max == 0 {
            return Err(JobSpecError::NoAttempts);
        }
        if self.slowstart_permille > 1000 {
            return Err(JobSpecError::Slowstart(self.slowstart_permille));
        }
        if u32::try_from(self.maps.len()).is_err() {
            return Err(JobSpecError::TooManyMaps(self.maps.len()));
        }
        Ok(())
    }
}

/// Changes to a job after its submission.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct JobChange {
    /// The new priority, if it changes.
    pub priority: Option<i32>,
    /// The new queue, if it changes.
    pub queue: Option<String>,
}

impl JobChange {
    /// Returns whether a specification already has these values.
    pub fn is_in(&self, spec: &JobSpec) -> bool {
        let keeps_priority = self.priority.is_none_or(|new| new == spec.priority);
        let keeps_queue = self.queue.as_ref().is_none_or(|new| *new == spec.queue);
        keeps_priority && keeps_queue
    }

    /// Applies the changes to a specification.
    pub fn apply_to(&self, spec: &mut JobSpec) {
        if let Some(priority) = self.priority {
            spec.priority = priority;
        }
        if let Some(queue) = &self.queue {
            spec.queue.clone_from(queue);
        }
    }

    /// Returns the printed form: `priority 5, queue nightly`.
    pub fn in_words(&self) -> String {
        let mut changes = Vec::new();
        if let Some(priority) = self.priority {
            changes.push(format!("priority {priority}"));
        }
        if let Some(queue) = &self.queue {
            changes.push(format!("queue {queue}"));
        }
        changes.join(", ")
    }
}

/// The outcome of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobOutcome {
    /// Every task is done.
    Succeeded,
    /// A task failed too often, or fatally.
    Failed {
        /// For people.
        reason: String,
    },
    /// It was killed on request.
    Killed {
        /// The requester and the reason.
        reason: String,
    },
}

impl JobOutcome {
    /// Returns why it did not succeed.
    pub fn reason(&self) -> Option<&str> {
        match self {
            JobOutcome::Succeeded => None,
            JobOutcome::Failed { reason } | JobOutcome::Killed { reason } => Some(reason),
        }
    }
}
