//! A random scheduling policy: it declines, preempts, cancels and requests wake-ups without reason. Its
//! choices depend only on its number of calls. When calm it gives every slot to a job that can use it. When
//! hostile it also requests illegal actions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{
    Action, Actions, AttemptState, ClusterView, Event, Job, JobId, JobState, Offer, Preempt,
    Primitive, Scheduler, Span, Start, TaskId, TaskKind, Time, WorkerId,
};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg32;

pub struct RandomPolicy {
    seed: u64,
    calls: u64,
    rng: Pcg32,
    hostile: bool,
    calm: Arc<AtomicBool>,
}

impl RandomPolicy {
    pub fn new(seed: u64, hostile: bool, calm: Arc<AtomicBool>) -> RandomPolicy {
        RandomPolicy {
            seed,
            calls: 0,
            rng: Pcg32::seed_from_u64(0),
            hostile,
            calm,
        }
    }

    fn is_calm(&self) -> bool {
        self.calm.load(Ordering::Relaxed)
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> Option<T> {
        if of.is_empty() {
            None
        } else {
            Some(of[self.rng.random_range(0..of.len())])
        }
    }

    fn fill(&mut self, offer: Offer, view: &ClusterView<'_>, actions: &mut Actions) {
        let useful = |job: &&Job| {
            job.wants_on(offer.kind, offer.worker)
                && offer.reserved_for.is_none_or(|only| only == job.id())
        };
        let jobs: Vec<&Job> = view.wanting(offer.kind).filter(useful).collect();
        let Some(job) = self.one(&jobs) else {
            return actions.decline("no job can use it");
        };
        let stopped = job.suspended_on(offer.kind, offer.worker);
        let pending: Vec<TaskId> = job.eligible_on(offer.kind, offer.worker).collect();
        match (stopped, self.one(&pending)) {
            (Some(attempt), Some(_)) if self.rng.random_bool(0.5) => actions.resume(attempt),
            (Some(attempt), None) => actions.resume(attempt),
            (_, Some(task)) => {
                let fresh = !self.is_calm() && self.rng.random_bool(0.2);
                let from = if fresh {
                    Start::Fresh
                } else {
                    job.start_of(task)
                };
                actions.launch(task, offer.worker, from);
            }
            (None, None) => actions.decline("no job can use it"),
        }
    }

    fn preempt(&mut self, view: &ClusterView<'_>) -> Option<Action> {
        let live = view
            .attempts()
            .filter(|one| one.state() != AttemptState::Killing);
        let live: Vec<_> = live
            .map(|one| (one.id(), one.state(), one.holds_slot()))
            .collect();
        let (attempt, state, holds_slot) = self.one(&live)?;
        let primitives = [
            Primitive::Wait,
            Primitive::Kill,
            Primitive::Suspend,
            Primitive::Checkpoint,
        ];
        let primitive = match state {
            AttemptState::Suspended if self.rng.random_bool(0.3) => Primitive::Checkpoint,
            _ if !holds_slot => Primitive::Kill,
            _ => self.one(&primitives)?,
        };
        let jobs: Vec<JobId> = view
            .jobs()
            .filter(|job| job.state() == JobState::Active)
            .map(Job::id)
            .collect();
        let beneficiary = if self.rng.random_bool(0.7) {
            self.one(&jobs)
        } else {
            None
        };
        let beneficiary = beneficiary.filter(|job| *job != attempt.task.job);
        let graces = [
            None,
            Some(Span(0)),
            Some(Span::from_millis(2)),
            Some(Span::from_millis(9)),
        ];
        let grace = self.one(&graces)?;
        Some(Action::Preempt(Preempt {
            attempt,
            primitive,
            grace,
            reason: "a whim".to_owned(),
            beneficiary,
        }))
    }

    fn nonsense(&mut self) -> Action {
        let kind = if self.rng.random_bool(0.5) {
            TaskKind::Map
        } else {
            TaskKind::Reduce
        };
        let job = JobId(self.rng.random_range(1..4));
        let task = TaskId {
            job,
            kind,
            index: self.rng.random_range(0..4),
        };
        let attempt = crate::AttemptId {
            task,
            number: self.rng.random_range(1..4),
        };
        let worker = WorkerId(self.rng.random_range(1..4));
        match self.rng.random_range(0..6) {
            0 => Action::Launch {
                task,
                worker,
                from: Start::Fresh,
            },
            1 => Action::Launch {
                task,
                worker,
                from: Start::Checkpoint(attempt),
            },
            2 => Action::Resume { attempt },
            3 => Action::Cancel { attempt },
            4 => Action::Decline {
                reason: "a whim".into(),
            },
            _ => Action::Preempt(Preempt {
                attempt,
                primitive: Primitive::Suspend,
                grace: None,
                reason: "a whim".to_owned(),
                beneficiary: Some(job),
            }),
        }
    }
}

impl Scheduler for RandomPolicy {
    fn on_event(&mut self, now: Time, _event: &Event, view: &ClusterView<'_>) {
        assert_eq!(view.now(), now);
    }

    fn schedule(&mut self, now: Time, view: &ClusterView<'_>, actions: &mut Actions) {
        self.calls += 1;
        self.rng = Pcg32::seed_from_u64(!self.seed ^ (self.calls << 32));
        if let Some(offer) = actions.offer() {
            if self.is_calm() || self.rng.random_bool(0.9) {
                self.fill(offer, view, actions);
            } else {
                actions.decline("a whim");
            }
        } else if !self.is_calm() {
            if self.rng.random_bool(0.3)
                && let Some(action) = self.preempt(view)
            {
                actions.push(action);
            }
            let open: Vec<_> = view.requests().map(|request| request.attempt).collect();
            if self.rng.random_bool(0.1)
                && let Some(attempt) = self.one(&open)
            {
                actions.push(Action::Cancel { attempt });
            }
            if self.rng.random_bool(0.05) {
                actions.push(Action::WakeAt(now + Span::from_millis(3)));
            }
        }
        if self.hostile && !self.is_calm() && self.rng.random_bool(0.1) {
            actions.push(self.nonsense());
        }
    }

    fn save(&self) -> Option<String> {
        Some(self.calls.to_string())
    }

    fn restore(&mut self, saved: Option<&str>) -> Result<(), String> {
        let saved = saved.ok_or("no saved number of calls")?;
        self.calls = saved
            .parse()
            .map_err(|error| format!("invalid number of calls '{saved}': {error}"))?;
        Ok(())
    }

    fn next_wakeup(&self, now: Time) -> Option<Time> {
        (!self.is_calm()).then_some(now + Span::from_millis(4))
    }
}
