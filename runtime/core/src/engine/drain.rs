//! Workers that are to leave: nothing new, and gone when nothing there is needed.
//!
//! Owns what a drain means for what the worker runs and holds: nothing is resumed there any more, so that what is suspended is
//! woken to save its work and exit, or killed. A job whose last worker drains waits for another one.

use crate::effect::{Effect, Record};
use crate::engine::Engine;
use crate::ids::{AttemptId, WorkerId};
use crate::preemption::{Primitive, Requester};
use crate::states::{AttemptState, JobState, WorkerInput, WorkerState};

impl Engine {
    /// Takes a worker out of the offers. What is suspended there goes on elsewhere; when work is handed back, what runs is
    /// killed, except what is just committing, which is a rename and ends by itself.
    pub(super) fn drain_requested(&mut self, id: WorkerId, hand_back: bool) {
        let before = self.cluster.workers.get(&id).map(|worker| worker.state);
        if !self.step_worker(id, WorkerInput::DrainRequested) {
            return;
        }
        if before == Some(WorkerState::Up) {
            self.cluster.list_worker(id);
            self.cluster.drop_reservations(id, |_, _| true);
            self.cluster.draining.insert(id);
            self.exclusion_over(id);
            self.workers_changed();
            self.record(Record::WorkerDraining(id));
        }
        let attempts: Vec<AttemptId> = self.cluster.workers[&id].attempts().collect();
        for attempt in attempts {
            if self.cluster.attempt_mut(attempt).state == AttemptState::Suspended {
                self.move_away(attempt, id);
            } else if hand_back && !self.is_committing(attempt) {
                self.kill(attempt, format!("{id} is draining"));
            }
        }
        if hand_back {
            self.take_back_outputs_of(id);
        }
    }

    /// Gives up an attempt that is suspended on a draining worker, with its work if that can be saved.
    pub(super) fn move_away(&mut self, id: AttemptId, worker: WorkerId) {
        let (primitive, and) = if self.can_do(id).checkpoint {
            (Primitive::Checkpoint, String::new())
        } else {
            (Primitive::Kill, format!(", and {}s of {} cannot be checkpointed", id.task.kind, id.task.job))
        };
        self.give_up(id, primitive, Requester::Engine, format!("{worker} is draining{and}"));
    }

    /// Lets draining workers go that run nothing and hold nothing that a job needs.
    pub(super) fn let_workers_leave(&mut self) {
        let leaving: Vec<WorkerId> =
            self.cluster.draining.iter().copied().filter(|id| !self.is_needed(*id)).collect();
        for id in leaving {
            if self.step_worker(id, WorkerInput::Left) {
                self.cluster.draining.remove(&id);
                self.cluster.worker_mut(id).left = true;
                self.record(Record::WorkerLeft(id));
                self.effects.push(Effect::WorkerMayLeave { worker: id });
            }
        }
    }

    fn is_needed(&self, id: WorkerId) -> bool {
        let mut active = self.cluster.jobs.values().filter(|job| job.state == JobState::Active);
        self.cluster.workers[&id].attempts().next().is_some()
            || active.any(|job| job.outputs_on(id).next().is_some())
    }
}
