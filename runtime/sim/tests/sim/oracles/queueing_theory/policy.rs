//! A test policy: higher priority first, preempting lower priorities by one primitive. First come, first
//! served within a priority; preempted jobs keep their place.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use napreduce_engine::{
    Actions, AttemptState, ClusterView, Event, JobId, Preempt, Primitive, Scheduler, TaskKind,
    Time, serve,
};

/// Victim order: lowest priority, then youngest.
type Taking = (i32, Reverse<Time>, Reverse<JobId>);

pub struct PriorityFirst {
    primitive: Primitive,
    holders: BTreeSet<Taking>,
    known: BTreeMap<JobId, Taking>,
}

impl PriorityFirst {
    pub fn new(primitive: Primitive) -> PriorityFirst {
        PriorityFirst {
            primitive,
            holders: BTreeSet::new(),
            known: BTreeMap::new(),
        }
    }
}

impl Scheduler for PriorityFirst {
    fn on_event(&mut self, _: Time, _: &Event, _: &ClusterView<'_>) {}

    fn job_changed(&mut self, _: Time, id: JobId, view: &ClusterView<'_>) {
        match view.job(id).filter(|job| job.holding(TaskKind::Map) > 0) {
            Some(job) => {
                let key = (job.spec().priority, Reverse(job.submitted()), Reverse(id));
                self.holders.insert(key);
                self.known.insert(id, key);
            }
            None => {
                if let Some(key) = self.known.remove(&id) {
                    self.holders.remove(&key);
                }
            }
        }
    }

    fn schedule(&mut self, _: Time, view: &ClusterView<'_>, actions: &mut Actions) {
        if let Some(offer) = actions.offer() {
            let served = match offer.reserved_for {
                Some(job) => view.job(job).is_some_and(|job| serve(job, offer, actions)),
                None => view
                    .wanting(offer.kind)
                    .any(|job| serve(job, offer, actions)),
            };
            if !served {
                actions.decline("nobody has a use for it");
            }
            return;
        }
        let Some(claimant) = view.wanting(TaskKind::Map).next() else {
            return;
        };
        let Some(&(priority, _, Reverse(victim))) = self.holders.first() else {
            return;
        };
        if priority >= claimant.spec().priority || view.freeing(TaskKind::Map) > 0 {
            return;
        }
        let running = |id| {
            view.attempt(id)
                .is_some_and(|one| one.state() == AttemptState::Running)
        };
        let attempt = view
            .job(victim)
            .and_then(|job| job.attempts().find(|&id| running(id)));
        if let Some(attempt) = attempt {
            actions.preempt(Preempt {
                attempt,
                primitive: self.primitive,
                grace: None,
                reason: "a job of higher priority waits".to_owned(),
                beneficiary: Some(claimant.id()),
            });
        }
    }

    fn next_wakeup(&self, _: Time) -> Option<Time> {
        None
    }
}
