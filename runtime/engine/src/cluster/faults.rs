//! What went wrong with a task.
//!
//! Owns that it takes no room where nothing did, which is so of nearly all tasks. Does not own what follows
//! from it (`engine`).

use std::collections::BTreeSet;
use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Serialize};

use crate::ids::WorkerId;

/// The failures of one task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TaskFaults {
    /// Why its attempts failed, of those failures that count.
    pub failures: Vec<String>,
    /// The workers where they did, or that held an output of it that could not be read.
    pub failed_on: BTreeSet<WorkerId>,
    /// Hosts that lacked what it needs.
    #[serde(default)]
    pub short_on: BTreeSet<String>,
    /// Hosts that could not run its program.
    #[serde(default)]
    pub program_failed_on: BTreeSet<String>,
    /// The hosts of the workers that died while it ran there, the first of them; one for each time.
    #[serde(default)]
    pub lost_with: Vec<String>,
    /// How often it was alone with a worker that died, since it runs alone.
    #[serde(default)]
    pub lost_alone: u32,
}

static NONE: TaskFaults = TaskFaults {
    failures: Vec::new(),
    failed_on: BTreeSet::new(),
    short_on: BTreeSet::new(),
    program_failed_on: BTreeSet::new(),
    lost_with: Vec::new(),
    lost_alone: 0,
};

/// These, made with the first change.
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
