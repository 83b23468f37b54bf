//! The jobs that want slots, that may have stragglers, that wait for themselves, and that changed.

use crate::by_kind::ByKind;
use crate::cluster::job::{DefaultOrder, Job};
use crate::ids::{JobId, TaskKind};
use crate::sorted::SortedSet;

/// The lists that contain a job, for its tasks of one kind.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Listed {
    wanting: bool,
    launchable: bool,
    speculable: bool,
}

/// Lists of jobs; every job keeps in `listed` which of them contain it.
#[derive(Debug, Default)]
pub(crate) struct Demand {
    wanting: ByKind<SortedSet<DefaultOrder>>,
    launchable: ByKind<u32>,
    speculable: ByKind<SortedSet<JobId>>,
    /// With shared slots: jobs whose reduces wait for maps, none of which has a slot.
    deadlocked: SortedSet<JobId>,
    /// Jobs that the policy must be notified of.
    changed: Vec<JobId>,
}

impl Demand {
    /// Lists a job by its present state.
    pub fn list(&mut self, job: &mut Job) {
        let id = job.id();
        let order = job.default_order();
        for kind in TaskKind::ALL {
            let launchable = job.eligible_count(kind) > 0;
            let listed = Listed {
                wanting: launchable || job.may_resume(kind),
                launchable,
                speculable: job.may_have_stragglers(kind),
            };
            let before = std::mem::replace(&mut job.listed[kind], listed);
            if listed.wanting && !before.wanting {
                self.wanting[kind].insert(order);
            } else if !listed.wanting && before.wanting {
                self.wanting[kind].remove(&order);
            }
            self.launchable[kind] =
                self.launchable[kind] + u32::from(listed.launchable) - u32::from(before.launchable);
            if listed.speculable && !before.speculable {
                self.speculable[kind].insert(id);
            } else if !listed.speculable && before.speculable {
                self.speculable[kind].remove(&id);
            }
        }
    }

    /// Removes a job from the lists that are ordered by its specification.
    pub fn unlist(&mut self, job: &mut Job) {
        let order = job.default_order();
        for kind in TaskKind::ALL {
            if std::mem::take(&mut job.listed[kind].wanting) {
                self.wanting[kind].remove(&order);
            }
        }
    }

    /// Returns the jobs that could use a slot of a kind, in the default order.
    pub fn wanting(&self, kind: TaskKind) -> impl Iterator<Item = JobId> + use<'_> {
        self.wanting[kind].iter().map(|(_, _, job)| *job)
    }

    /// Returns whether a job is listed as wanting a slot of a kind.
    pub fn wants(&self, kind: TaskKind, order: DefaultOrder) -> bool {
        self.wanting[kind].contains(&order)
    }

    /// Returns how many jobs have a launchable task of a kind.
    pub fn launchable(&self, kind: TaskKind) -> u32 {
        self.launchable[kind]
    }

    /// Returns the jobs that may have stragglers of a kind.
    pub fn speculable(&self, kind: TaskKind) -> &SortedSet<JobId> {
        &self.speculable[kind]
    }

    /// Records whether a job's reduces wait for maps, none of which has a slot.
    pub fn set_deadlocked(&mut self, job: JobId, deadlocked: bool) {
        if deadlocked {
            self.deadlocked.insert(job);
        } else {
            self.deadlocked.remove(&job);
        }
    }

    /// Returns the jobs whose reduces wait for maps, none of which has a slot.
    pub fn deadlocked(&self) -> &SortedSet<JobId> {
        &self.deadlocked
    }

    /// Records that a job changed or ended.
    pub fn add_changed(&mut self, job: JobId) {
        self.changed.push(job);
    }

    /// Takes the jobs that changed since the last call. Their list is returned to `reuse`.
    pub fn take_changed(&mut self) -> Vec<JobId> {
        std::mem::take(&mut self.changed)
    }

    /// Takes back an emptied list, to reuse its buffer.
    pub fn reuse(&mut self, emptied: Vec<JobId>) {
        self.changed = emptied;
    }
}
