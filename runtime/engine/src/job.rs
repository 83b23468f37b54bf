//! What a job asks of the engine and how it can end.
//!
//! Owns the plain data of a submission. Does not own its paths, parameters or formats: those are opaque to
//! the engine and stay with the runtime that carries out orders.

use serde::{Deserialize, Serialize};

use crate::ids::{TaskKind, WorkerId};
use crate::time::Time;

/// How many attempts of each kind a worker runs at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slots {
    /// Map slots.
    pub map: u32,
    /// Reduce slots.
    pub reduce: u32,
}

/// One map task of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapSpec {
    /// Bytes of input.
    pub bytes: u64,
    /// Workers that hold the input, if any do.
    pub preferred: Vec<WorkerId>,
}

/// What a job is to the master of a job, where jobs have masters. Only in the simulator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum JobPart {
    /// A job that has no master.
    #[default]
    Whole,
    /// A master: its only map holds a container until the job that it manages has ended.
    Master,
    /// A job that a master manages, and that is submitted when that one has started.
    Managed,
}

/// What a job asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSpec {
    /// Name, for people.
    pub name: String,
    /// Who submitted it.
    pub user: String,
    /// The queue it was submitted to.
    pub queue: String,
    /// Higher is more important.
    pub priority: i32,
    /// When it should be done, if it matters.
    pub deadline: Option<Time>,
    /// Its map tasks in order; may be empty.
    pub maps: Vec<MapSpec>,
    /// How many reduce tasks; zero makes it map-only.
    pub reduces: u32,
    /// How often a task may fail before the job does; at least 1.
    pub attempts_max: u32,
    /// Reduces become eligible when this many thousandths of the maps are done (0..=1000).
    pub slowstart_permille: u32,
    /// The kinds of its tasks whose work cannot be saved: their code keeps a state and does not say how.
    #[serde(default)]
    pub unsaved: Vec<TaskKind>,
    /// Bytes of memory that one of its tasks needs; zero where that is not known.
    #[serde(default)]
    pub memory: u64,
    /// Whether the output of its maps can be put where it outlives their workers.
    #[serde(default)]
    pub outputs_move: bool,
}

/// Why a job cannot be accepted as asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobSpecError {
    /// No attempt would ever be allowed.
    #[error("attempts_max is 0; a task needs at least 1 attempt")]
    NoAttempts,
    /// Not a share.
    #[error("slowstart_permille is {0}; give 0 to 1000")]
    Slowstart(u32),
    /// Task numbers are 32 bits wide.
    #[error("{0} map tasks are too many; use larger splits, for at most {max} tasks", max = u32::MAX)]
    TooManyMaps(usize),
}

impl JobSpec {
    /// Whether the engine can run a job like this; ask before submitting, so that the submitter gets
    /// the answer.
    ///
    /// # Errors
    /// Says which value is out of bounds. The engine fails a job at once that is submitted all the same.
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

/// What of a job can be different after it was submitted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct JobChange {
    /// Its priority, if that is to be another one.
    pub priority: Option<i32>,
    /// Its queue, likewise.
    pub queue: Option<String>,
}

impl JobChange {
    /// Whether a job asks for what this says already.
    pub fn is_in(&self, spec: &JobSpec) -> bool {
        self.priority.is_none_or(|priority| priority == spec.priority)
            && self.queue.as_ref().is_none_or(|queue| *queue == spec.queue)
    }

    /// Has a job ask for it.
    pub fn apply_to(&self, spec: &mut JobSpec) {
        spec.priority = self.priority.unwrap_or(spec.priority);
        if let Some(queue) = &self.queue {
            spec.queue.clone_from(queue);
        }
    }

    /// As it is printed: `priority 5, queue nightly`.
    pub fn in_words(&self) -> String {
        let priority = self.priority.map(|priority| format!("priority {priority}"));
        let queue = self.queue.as_ref().map(|queue| format!("queue {queue}"));
        priority.into_iter().chain(queue).collect::<Vec<_>>().join(", ")
    }
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobOutcome {
    /// Every task is done.
    Succeeded,
    /// A task failed too often, or fatally.
    Failed {
        /// Why, for people.
        reason: String,
    },
    /// Somebody ended it.
    Killed {
        /// Who and why.
        reason: String,
    },
}

impl JobOutcome {
    /// Why it did not succeed.
    pub fn reason(&self) -> Option<&str> {
        match self {
            JobOutcome::Succeeded => None,
            JobOutcome::Failed { reason } | JobOutcome::Killed { reason } => Some(reason),
        }
    }
}
