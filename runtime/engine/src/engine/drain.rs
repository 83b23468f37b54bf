//! Draining workers: they get no new attempts and leave when nothing on them is needed. Nothing is resumed
//! there any more, so suspended attempts are checkpointed or killed. A job whose last worker drains waits for
//! another one.
//!
//! A worker that is terminated externally (its pod, its allocation) reports how long it has. Its attempts save
//! their work at once, those that cannot may finish, and after half of the grace the remaining ones are
//! killed. Its map outputs are copied to storage that outlives it (`moves`).

use crate::cluster::{Cluster, Deadline};
use crate::effect::{Effect, Record};
use crate::engine::{Engine, Rules};
use crate::ids::{AttemptId, WorkerId};
use crate::preemption::{Primitive, Requester};
use crate::refusal::OperatorRefusal;
use crate::states::{AttemptState, JobState, WorkerInput, WorkerState};
use crate::time::Span;

impl Engine {
    /// Checks whether a draining worker can be kept.
    ///
    /// # Errors
    /// Returns the reason why not.
    pub fn can_undrain(&self, id: WorkerId) -> Result<(), OperatorRefusal> {
        let worker = self
            .rules
            .cluster
            .workers
            .get(&id)
            .ok_or(OperatorRefusal::NoSuchWorker)?;
        match worker.state() {
            WorkerState::Draining if worker.is_ended_from_outside() => {
                Err(OperatorRefusal::WorkerEndedFromOutside)
            }
            WorkerState::Draining => Ok(()),
            _ if worker.has_left() => Err(OperatorRefusal::WorkerLeft),
            WorkerState::Up => Err(OperatorRefusal::NotDraining),
            WorkerState::Unknown | WorkerState::Lost => Err(OperatorRefusal::NoSuchWorker),
        }
    }
}

impl Rules {
    /// Removes a worker from the offers. Suspended attempts move to other workers. If work is handed back,
    /// running attempts are killed, or checkpointed if there is a grace; committing ones are left alone,
    /// because a commit is one short rename.
    pub(super) fn drain_requested(&mut self, id: WorkerId, hand_back: bool, grace: Option<Span>) {
        let before = self.cluster.workers.get(&id).map(|worker| worker.state());
        if !self.step_worker(id, WorkerInput::DrainRequested) {
            return;
        }
        if before == Some(WorkerState::Up) {
            self.cluster.list_worker(id);
            self.promise_no_slots_of(id);
            self.cluster.departures.drain(id);
            self.cluster.exclusion_over(id);
            self.cluster.workers_changed();
            self.record(Record::WorkerDraining(id));
        }
        let grace = grace.filter(|_| hand_back);
        if let Some(grace) = grace {
            self.cluster.save_within(id, grace);
        }
        let attempts: Vec<AttemptId> = self.cluster.workers[&id].attempts().collect();
        for attempt in attempts {
            if self.cluster.attempt_mut(attempt).state == AttemptState::Suspended {
                self.move_away(attempt, id);
            } else if grace.is_some() {
                self.save_in_time(attempt, id);
            } else if hand_back && !self.cluster.job(attempt.task.job).is_committing(attempt) {
                self.kill(attempt, format!("{id} is draining"));
            }
        }
        match grace {
            Some(_) => self.move_outputs_of(id),
            None if hand_back => self.take_back_outputs_of(id),
            None => {}
        }
    }

    /// Offers the slots of a draining worker again. Work that was handed back already runs on other workers.
    pub(super) fn undrain_requested(&mut self, id: WorkerId) {
        if self.step_worker(id, WorkerInput::UndrainRequested) {
            self.cluster.departures.end_drain(id);
            self.cluster.drop_saving(id);
            let most_suspended = self.settings.preemption.suspended_max;
            self.cluster.worker_mut(id).find_full(most_suspended);
            self.cluster.list_worker(id);
            self.cluster.workers_changed();
            self.record(Record::WorkerUndrained(id));
        }
    }

    /// Checkpoints an attempt, if possible, on a worker with a grace. An attempt that has not begun has
    /// nothing to save.
    pub(super) fn save_in_time(&mut self, id: AttemptId, worker: WorkerId) {
        let saves_until = self
            .cluster
            .workers
            .get(&worker)
            .and_then(|worker| worker.saves_until());
        if saves_until.is_none_or(|until| until < self.cluster.now)
            || self.cluster.job(id.task.job).is_committing(id)
        {
            return;
        }
        let reason = format!("{worker} is draining");
        let state = self.cluster.attempts[&id].state;
        let job = self.cluster.job(id.task.job);
        let can = self.settings.preemption.can_do(job, id.task.kind);
        match state {
            AttemptState::Launching => self.kill(id, reason),
            AttemptState::Running | AttemptState::Resuming if can.checkpoint => {
                self.replace_request(id, Primitive::Checkpoint, Requester::Engine, reason);
            }
            _ => {}
        }
    }

    /// Kills the attempts that have neither saved their work nor finished on a worker that is about to be
    /// ended.
    pub(super) fn saving_over(&mut self, id: WorkerId) {
        let attempts: Vec<AttemptId> = self.cluster.workers[&id].attempts().collect();
        for attempt in attempts {
            if !self.cluster.job(attempt.task.job).is_committing(attempt) {
                self.kill(
                    attempt,
                    format!("{id} is draining, and its time to save work is over"),
                );
            }
        }
    }

    /// Gives up an attempt that is suspended on a draining worker, and saves its work if possible.
    pub(super) fn move_away(&mut self, id: AttemptId, worker: WorkerId) {
        let job = self.cluster.job(id.task.job);
        let can = self.settings.preemption.can_do(job, id.task.kind);
        let (primitive, and) = if can.checkpoint {
            (Primitive::Checkpoint, String::new())
        } else {
            (
                Primitive::Kill,
                format!(
                    ", and {}s of {} cannot be checkpointed",
                    id.task.kind, id.task.job
                ),
            )
        };
        self.give_up(
            id,
            primitive,
            Requester::Engine,
            format!("{worker} is draining{and}"),
        );
    }

    /// Lets draining workers leave that run no attempts and hold nothing that a job needs.
    pub(super) fn release_drained_workers(&mut self) {
        let given_up = |id: &WorkerId| {
            let saves_until = self.cluster.workers[id].saves_until();
            saves_until.is_some_and(|until| until <= self.cluster.now)
        };
        // Outputs that stay or finish there from now on would be lost with the worker.
        let given_up: Vec<WorkerId> = self
            .cluster
            .departures
            .draining()
            .iter()
            .copied()
            .filter(given_up)
            .collect();
        for id in given_up {
            self.take_back_outputs_of(id);
        }
        let leaving: Vec<WorkerId> = self
            .cluster
            .departures
            .draining()
            .iter()
            .copied()
            .filter(|id| !self.cluster.is_needed(*id))
            .collect();
        for id in leaving {
            if self.step_worker(id, WorkerInput::Left) {
                self.cluster.departures.end_drain(id);
                self.cluster.drop_saving(id);
                self.cluster.worker_mut(id).leave();
                self.record(Record::WorkerLeft(id));
                self.effects.push(Effect::WorkerMayLeave { worker: id });
            }
        }
    }
}

impl Cluster {
    /// Sets the time to save work to half of the grace; an earlier end set before stays in force.
    fn save_within(&mut self, id: WorkerId, grace: Span) {
        let half = self.now + Span(grace.0 / 2);
        let until = self.workers[&id]
            .saves_until()
            .map_or(half, |before| before.min(half));
        self.drop_saving(id);
        self.worker_mut(id).set_saves_until(Some(until));
        self.deadlines.set(until, Deadline::Drained(id));
    }

    fn is_needed(&self, id: WorkerId) -> bool {
        let mut active = self
            .jobs
            .values()
            .filter(|job| job.state == JobState::Active);
        self.workers[&id].attempts().next().is_some()
            || active.any(|job| job.outputs_on(id).next().is_some())
    }
}

impl Cluster {
    /// Forgets a worker's time to save work: it is lost, or stays.
    pub(super) fn drop_saving(&mut self, id: WorkerId) {
        if let Some(until) = self.worker_mut(id).set_saves_until(None) {
            self.deadlines.cancel(until, Deadline::Drained(id));
        }
    }
}
