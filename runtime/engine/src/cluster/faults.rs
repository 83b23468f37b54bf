//! The fault history of a task. It takes no space for a task without faults, i.e. for nearly all tasks.

use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Serialize};

use crate::cluster::pairs;
use crate::fault::DiskNeed;
use crate::ids::WorkerId;
use crate::sorted::{SortedMap, SortedSet};
use crate::time::Time;

/// Maximum number of remembered crashes per task.
const CRASHES_REMEMBERED: usize = 16;

/// A worker on which a task is not retried for a while.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RetryPause {
    pub until: Time,
    /// Why the task failed there.
    pub reason: String,
}

/// The failures of a job's tasks of one kind on one worker since such a task last succeeded there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct FailureStreak {
    pub failures: u32,
    pub tasks: SortedSet<u32>,
    /// None of the tasks starts there until then.
    pub avoided_until: Option<Time>,
    /// Whether they wait even if every other worker is avoided: the worker lacked a resource.
    pub waits: bool,
}

/// The faults of one task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TaskFaults {
    /// The reasons of its counted failures.
    pub failures: Vec<String>,
    /// The workers where it failed, or that held an output of it that could not be read.
    pub failed_on: SortedSet<WorkerId>,
    /// Hosts that lacked a resource that it needs.
    #[serde(default)]
    pub short_on: SortedSet<String>,
    /// How many of its attempts failed for lack of such a resource.
    #[serde(default)]
    pub shortages: u32,
    /// The disk space that it needs, and the most that a worker had for it.
    #[serde(default)]
    pub disk_need: Option<DiskNeed>,
    /// The workers that lacked the resource, and for how long it is not retried there.
    #[serde(default, with = "pairs")]
    pub pauses: SortedMap<WorkerId, RetryPause>,
    /// Hosts that could not run its program.
    #[serde(default)]
    pub program_failed_on: SortedSet<String>,
    /// The hosts of the first workers that crashed while it ran there, one entry per crash.
    #[serde(default)]
    pub lost_with: Vec<String>,
    /// How many workers crashed while it ran alone.
    #[serde(default)]
    pub lost_alone: u32,
}

impl TaskFaults {
    /// Adds a failure for lack of a resource of a host, and the disk space that the task needs, if that is known.
    pub fn add_shortage(&mut self, host: String, need: Option<DiskNeed>) {
        self.short_on.insert(host);
        self.shortages += 1;
        if let Some(need) = need {
            self.disk_need = Some(self.disk_need.map_or(need, |known| known.max(need)));
        }
    }

    /// Adds the crash of a worker while the task ran there. The first crashes are remembered with their hosts.
    pub fn add_crash(&mut self, host: &str) {
        if self.lost_with.len() < CRASHES_REMEMBERED {
            self.lost_with.push(host.to_owned());
        }
    }

    /// Returns whether a worker crashed while the task ran there.
    pub fn has_crashes(&self) -> bool {
        !self.lost_with.is_empty() || self.lost_alone > 0
    }

    /// Forgets the crashes, because the task has completed.
    pub fn clear_crashes(&mut self) {
        self.lost_with.clear();
        self.lost_alone = 0;
    }
}

static NONE: TaskFaults = TaskFaults {
    failures: Vec::new(),
    failed_on: SortedSet::new(),
    short_on: SortedSet::new(),
    shortages: 0,
    disk_need: None,
    pauses: SortedMap::new(),
    program_failed_on: SortedSet::new(),
    lost_with: Vec::new(),
    lost_alone: 0,
};

/// The faults, allocated on the first change.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(from = "TaskFaults", into = "TaskFaults")]
pub(crate) struct Faults(Option<Box<TaskFaults>>);

impl Deref for Faults {
    type Target = TaskFaults;

    fn deref(&self) -> &TaskFaults {
        self.0.as_deref().unwrap_or(&NONE)
    }
}

impl DerefMut for Faults {
    fn deref_mut(&mut self) -> &mut TaskFaults {
        self.0.get_or_insert_default()
    }
}

impl PartialEq for Faults {
    fn eq(&self, other: &Faults) -> bool {
        **self == **other
    }
}

impl From<TaskFaults> for Faults {
    fn from(faults: TaskFaults) -> Faults {
        Faults((faults != NONE).then(|| Box::new(faults)))
    }
}

impl From<Faults> for TaskFaults {
    fn from(faults: Faults) -> TaskFaults {
        faults.0.map(|faults| *faults).unwrap_or_default()
    }
}
