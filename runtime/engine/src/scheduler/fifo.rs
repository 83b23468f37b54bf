//! First in, first out: the oldest job of the highest priority gets every slot it can use. It has no state,
//! because the view already lists the jobs that want slots in this order, and never preempts.

use serde::{Deserialize, Serialize};

use super::serving::{other_kind_first, serve};
use super::{Actions, Scheduler};
use crate::cluster::{ClusterView, Job};
use crate::event::Event;
use crate::ids::{JobId, TaskKind};
use crate::job::{JobChange, JobSpec};
use crate::refusal::PolicyRefusal;
use crate::time::Time;

/// Jobs by priority, then submit time, then id; within a job, a task with its input on the worker, then the
/// first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Fifo {
    /// Order by submit time and id alone.
    pub ignore_priority: bool,
}

impl Scheduler for Fifo {
    fn on_event(&mut self, _now: Time, _event: &Event, _view: &ClusterView<'_>) {}

    fn schedule(&mut self, _now: Time, view: &ClusterView<'_>, actions: &mut Actions) {
        let Some(offer) = actions.offer() else { return };
        if actions.chooses_kind(view) && other_kind_first(view, offer.kind) {
            return actions.decline("an earlier job goes first, with the other kind of task");
        }
        let served = if let Some(beneficiary) = offer.reserved_for {
            view.job(beneficiary)
                .is_some_and(|job| serve(job, offer, actions))
        } else if self.ignore_priority {
            let mut jobs: Vec<&Job> = view.wanting(offer.kind).collect();
            jobs.sort_by_key(|job| (job.submitted(), job.id()));
            jobs.into_iter().any(|job| serve(job, offer, actions))
        } else {
            view.wanting(offer.kind)
                .any(|job| serve(job, offer, actions))
        };
        if !served {
            actions.decline("every job that wants a slot waits for one of another worker");
        }
    }

    fn order(&self, kind: TaskKind, view: &ClusterView<'_>) -> Vec<JobId> {
        let mut jobs: Vec<&Job> = view.wanting(kind).collect();
        if self.ignore_priority {
            jobs.sort_by_key(|job| (job.submitted(), job.id()));
        }
        jobs.into_iter().map(Job::id).collect()
    }

    fn is_before(&self, _kind: TaskKind, one: &Job, other: &Job) -> bool {
        if self.ignore_priority {
            (one.submitted(), one.id()) < (other.submitted(), other.id())
        } else {
            one.default_order() < other.default_order()
        }
    }

    fn rank(&self, spec: &JobSpec) -> i128 {
        if self.ignore_priority {
            0
        } else {
            -i128::from(spec.priority)
        }
    }

    fn can_change(&self, change: &JobChange) -> Result<(), PolicyRefusal> {
        match change {
            JobChange { queue: Some(_), .. } => Err(PolicyRefusal::NoQueues("fifo")),
            _ if self.ignore_priority => Err(PolicyRefusal::PrioritiesIgnored {
                scheduler: "fifo",
                setting: "[scheduler.fifo] ignore-priority",
            }),
            _ => Ok(()),
        }
    }

    fn next_wakeup(&self, _now: Time) -> Option<Time> {
        None
    }
}
