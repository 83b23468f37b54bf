//! The health of a worker: missing resources, and failures of attempts there that were the worker's fault.
//!
//! A failure is first a suspicion: the task or the job may be the cause. It counts against the worker when the
//! task then succeeds on another worker. A success on the worker clears both, but does not end an exclusion.

use serde::{Deserialize, Serialize};

use crate::cluster::pairs;
use crate::ids::{AttemptId, TaskId};
use crate::sorted::{SortedMap, SortedSet};
use crate::time::Time;

/// Why a worker that is up receives no attempts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Health {
    /// The resource that the worker reported as missing.
    #[serde(default)]
    short: Option<String>,
    #[serde(default)]
    exclusion: Option<Exclusion>,
    /// Failures of tasks that have not succeeded anywhere.
    #[serde(default, with = "pairs")]
    suspected: SortedMap<TaskId, Suspicion>,
    /// Failures of tasks that then succeeded on other workers.
    #[serde(default)]
    blame: Option<Blame>,
    /// The tasks of these failures.
    #[serde(default)]
    blamed_by: SortedSet<TaskId>,
}

/// Failures of one task on one worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Suspicion {
    failures: u32,
    last: AttemptId,
    reason: String,
}

/// Failures of attempts on a worker whose tasks then succeeded on other workers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blame {
    /// How many attempts failed.
    pub failures: u32,
    /// How many tasks they belonged to.
    pub tasks: u32,
    /// The attempt that failed last.
    pub last: AttemptId,
    /// Why it failed.
    pub reason: String,
}

/// A worker that gets no attempts for a while, because many failed there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exclusion {
    /// When it ends.
    pub until: Time,
    /// The failures that caused it.
    pub blame: Blame,
}

impl Blame {
    /// Describes the failures, for people.
    pub fn in_words(&self) -> String {
        let Blame {
            failures,
            tasks,
            last,
            reason,
        } = self;
        let (attempts, are) = if *failures == 1 {
            ("attempt", "its task")
        } else {
            ("attempts", "their tasks")
        };
        let of = if tasks == failures {
            String::new()
        } else {
            format!(" of {tasks} tasks")
        };
        format!(
            "the last {failures} {attempts}{of} failed there, and {are} then succeeded on other workers; last: \
             {last}: {reason}"
        )
    }
}

impl Health {
    /// Returns whether the worker lacks nothing and is not excluded.
    pub fn is_good(&self) -> bool {
        self.short.is_none() && self.exclusion.is_none()
    }

    /// Returns the resource that the worker reported as missing.
    pub fn reported_shortage(&self) -> Option<&str> {
        self.short.as_deref()
    }

    /// Records a worker's report; returns false if it changes nothing.
    pub fn report_shortage(&mut self, lacks: Option<&str>) -> bool {
        let changes = self.short.as_deref() != lacks;
        if changes {
            self.short = lacks.map(str::to_owned);
        }
        changes
    }

    pub fn exclusion(&self) -> Option<&Exclusion> {
        self.exclusion.as_ref()
    }

    pub fn exclude(&mut self, until: Time, blame: Blame) {
        self.exclusion = Some(Exclusion { until, blame });
    }

    /// Ends the exclusion and returns when it would have ended.
    pub fn end_exclusion(&mut self) -> Option<Time> {
        self.exclusion.take().map(|exclusion| exclusion.until)
    }

    /// Records a failure of which the task or the worker may be the cause.
    pub fn suspect(&mut self, failed: AttemptId, reason: &str) {
        let suspicion = self
            .suspected
            .get_or_insert_with(failed.task, || Suspicion {
                failures: 0,
                last: failed,
                reason: String::new(),
            });
        suspicion.failures += 1;
        suspicion.last = failed;
        reason.clone_into(&mut suspicion.reason);
    }

    /// Returns the tasks that failed here and have not succeeded anywhere.
    pub fn suspected(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.suspected.keys().copied()
    }

    /// Drops the suspicion from the failures of a task.
    pub fn acquit(&mut self, task: TaskId) {
        self.suspected.remove(&task);
    }

    /// Counts the failures of a task that succeeded on another worker; returns false if there are none.
    pub fn convict(&mut self, task: TaskId) -> bool {
        let Some(Suspicion {
            failures,
            last,
            reason,
        }) = self.suspected.remove(&task)
        else {
            return false;
        };
        let before = self.blame.as_ref().map_or(0, |blame| blame.failures);
        self.blamed_by.insert(task);
        let tasks = self.blamed_by.len() as u32;
        self.blame = Some(Blame {
            failures: before + failures,
            tasks,
            last,
            reason,
        });
        true
    }

    /// Returns the failures since the last success whose tasks succeeded on other workers.
    pub fn blame(&self) -> Option<&Blame> {
        self.blame.as_ref()
    }

    /// Forgets the failures after a success.
    pub fn clear_failures(&mut self) {
        self.suspected.clear();
        self.blame = None;
        self.blamed_by.clear();
    }
}
