//! Task durations of successful jobs, by job name.

use serde::{Deserialize, Serialize};

use crate::by_kind::ByKind;
use crate::cluster::job::Job;
use crate::ids::TaskKind;
use crate::sorted::SortedMap;
use crate::time::{Span, Time};

/// How many names are kept; beyond that, the name whose last job ended earliest is dropped.
const NAMES_MAX: usize = 1_000;

/// The total work time of some tasks, without lost work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lengths {
    pub tasks: u64,
    pub total: Span,
    pub longest: Span,
    /// The part of the total for which reduces waited for maps.
    #[serde(default)]
    pub(crate) waited: Span,
    /// The squares of the other parts, in milliseconds.
    #[serde(default)]
    pub(crate) squares: u64,
}

impl Lengths {
    /// Returns the mean; `None` for no tasks.
    pub fn mean(self) -> Option<Span> {
        self.total.0.checked_div(self.tasks).map(Span)
    }

    fn add(self, more: Lengths) -> Lengths {
        Lengths {
            tasks: self.tasks.saturating_add(more.tasks),
            total: Span(self.total.0.saturating_add(more.total.0)),
            longest: self.longest.max(more.longest),
            waited: Span(self.waited.0.saturating_add(more.waited.0)),
            squares: self.squares.saturating_add(more.squares),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct KnownLengths {
    /// The last job of each name, and when it ended.
    by_name: SortedMap<String, (Time, ByKind<Lengths>)>,
    /// All jobs.
    all: ByKind<Lengths>,
}

impl KnownLengths {
    /// Records a job that succeeded.
    pub fn note(&mut self, job: &Job, now: Time) {
        let of = ByKind::from_fn(|kind| of_done(job, kind));
        self.all = ByKind::from_fn(|kind| self.all[kind].add(of[kind]));
        self.by_name.insert(job.spec.name.clone(), (now, of));
        if self.by_name.len() > NAMES_MAX {
            let oldest = self
                .by_name
                .iter()
                .min_by_key(|(name, (at, _))| (*at, name.as_str()));
            if let Some(name) = oldest.map(|(name, _)| name.clone()) {
                self.by_name.remove(&name);
            }
        }
    }

    /// Returns the durations of the last job of a name, if that succeeded.
    pub fn of_name(&self, name: &str, kind: TaskKind) -> Option<Lengths> {
        self.by_name
            .get(name)
            .map(|(_, of)| of[kind])
            .filter(|lengths| lengths.tasks > 0)
    }

    /// Returns the durations of the job's own completed tasks, else of the last job of its name, else of all
    /// jobs.
    pub fn of(&self, name: &str, own: Option<&Job>, kind: TaskKind) -> Option<Lengths> {
        let own = own
            .filter(|job| job.tasks_done(kind) > 0)
            .map(|job| of_done(job, kind));
        let named = self.by_name.get(name).map(|(_, of)| of[kind]);
        [own, named, Some(self.all[kind])]
            .into_iter()
            .flatten()
            .find(|lengths| lengths.tasks > 0)
    }
}

fn of_done(job: &Job, kind: TaskKind) -> Lengths {
    let phase = &job.phases[kind];
    let longest = phase.done_tasks().map(|task| task.took).max();
    Lengths {
        tasks: u64::from(phase.done),
        total: phase.sums.worked,
        longest: longest.unwrap_or_default(),
        waited: phase.sums.waited,
        squares: u64::try_from(phase.sums.squares / 1_000_000).unwrap_or(u64::MAX),
    }
}
