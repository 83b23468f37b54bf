//! Suspension results (stopped, refused), giving up suspended attempts, and the measurement of these costs. A
//! suspended attempt cannot move: after a while without a slot on its worker it is converted, i.e. woken to
//! save its work or killed, if another worker has an unwanted slot.

use std::cmp::Reverse;

use crate::cluster::{Attempt, Cluster, Saving, Suspension};
use crate::effect::{Order, Record, Start};
use crate::engine::Rules;
use crate::ids::{AttemptId, TaskKind, WorkerId};
use crate::preemption::{Primitive, RequestState, Requester};
use crate::settings::{Conversion, Converted};
use crate::states::{AttemptInput, AttemptState, WorkerState};
use crate::time::{Span, Time};

impl Rules {
    /// Handles a verified stop. Unless it `saves`, the attempt must finish a unit of work before it can save.
    pub(super) fn suspended(&mut self, id: AttemptId, saves: bool) {
        let Some((_, AttemptState::Suspended)) = self.step(id, AttemptInput::Suspended) else {
            return;
        };
        let now = self.cluster.now;
        let suspension = Suspension::new(now, self.cluster.requests.get(&id));
        let attempt = self.cluster.attempt_mut(id);
        attempt.suspend(suspension);
        attempt.is_at_work = !saves;
        let worker = attempt.worker;
        let ordered = attempt.ordered;
        self.cluster
            .costs
            .add_suspend(id.task.kind, now.since(ordered));
        self.cluster.task_mut(id.task).suspends += 1;
        self.cluster.vacate(worker, id.task.kind, id.task.job);
        self.cluster.relist(id);
        self.record(Record::Suspended(id));
        self.cluster.judge_free(id, Span(0));
        let worked = self.cluster.attempt_mut(id).work_time(now);
        self.cluster
            .close_request(id, worker, true, worked, &self.settings);
        self.cluster.refresh(id.task.job);
        if self.cluster.workers[&worker].state() == WorkerState::Draining {
            self.move_away(id, worker);
        }
    }

    /// Handles a worker's refusal to keep another stopped process. A policy's request falls back as the
    /// settings define; for an operator's, the engine logs a warning.
    pub(super) fn suspend_refused(&mut self, id: AttemptId, why: &str) {
        let Some((_, AttemptState::Running)) = self.step(id, AttemptInput::SuspendRefused) else {
            return;
        };
        let worker = self.cluster.attempt_mut(id).worker;
        let message = format!("{id} cannot be suspended and continues: {worker} reported: {why}");
        self.fall_back(id, why, message);
        self.save_in_time(id, worker);
    }

    /// Applies the fallback of the settings to a policy's suspend that is not possible; for an operator's,
    /// logs a warning.
    pub(super) fn fall_back(&mut self, id: AttemptId, why: &str, message: String) {
        self.cluster.release_hold(id);
        self.cluster.attempt_mut(id).hold = None;
        let asked = self
            .cluster
            .requests
            .get(&id)
            .filter(|one| one.primitive == Primitive::Suspend);
        let by = asked.map(|request| request.by);
        // If costs decide, decide again, without suspend.
        let settings = &self.settings.preemption;
        let mut cheapest = None;
        if let Some(request) = asked {
            let attempt = &self.cluster.attempts[&id];
            let beneficiary = request.beneficiary;
            let waited = request.waited;
            cheapest = settings.cheapest_but_suspend(&self.cluster, attempt, beneficiary, waited);
        }
        let instead = cheapest.map_or(settings.when_full.into(), |one| one.primitive);
        let instead = (by == Some(Requester::Policy)).then_some(instead);
        self.record(Record::SuspendRefused {
            attempt: id,
            instead,
            reason: why.to_owned(),
        });
        // As after a resume: a requested commit comes first.
        self.grant_commit(id);
        if by.is_some_and(|by| by != Requester::Policy) {
            self.cluster.remove_request(id, &self.settings.preemption);
            self.cluster.tally.requests_cancelled += 1;
            self.warn(message);
        } else if let Some(primitive) = instead
            && let Some(mut request) = self.cluster.remove_request(id, &self.settings.preemption)
        {
            self.cluster.tally.fallbacks.worker_full += 1;
            request.reason = format!("{} ({primitive} instead of suspend: {why})", request.reason);
            request.primitive = primitive;
            request.state = RequestState::Created;
            // The grace was for the suspend: see `preempt`.
            (request.grace, request.earliest, request.estimate) = (None, None, cheapest);
            self.open_request(request);
        }
        self.advance_request(id);
    }

    /// Gives up a suspended attempt so that its task can continue on another worker: wakes it to save its
    /// work and exit, without a slot, or kills it. One that must first finish a unit of work gets the next free slot
    /// of its worker for that.
    pub(super) fn give_up(&mut self, id: AttemptId, how: Primitive, by: Requester, reason: String) {
        let job = self.cluster.job(id.task.job);
        let can = self.settings.preemption.can_do(job, id.task.kind);
        let primitive = match how {
            Primitive::Checkpoint if !can.checkpoint => can.otherwise.into(),
            how => how,
        };
        if primitive == Primitive::Wait {
            return;
        }
        if primitive == Primitive::Checkpoint && self.cluster.attempts[&id].is_at_work {
            return self.cluster.save_in_next_slot(id, by, reason);
        }
        self.record(Record::Converted {
            attempt: id,
            primitive,
            by,
            reason: reason.clone(),
        });
        if primitive == Primitive::Kill {
            return self.kill(id, reason);
        }
        if by == Requester::Operator {
            self.cluster.release_hold(id);
        }
        let attempt = self.cluster.attempt_mut(id);
        attempt.drop_recall();
        attempt.waits_since = None;
        attempt.explain_suspension(by, reason);
        let worker = attempt.worker;
        self.cluster.list_suspended(id, worker, false);
        self.order(
            id,
            AttemptInput::CheckpointOrdered,
            Order::Checkpoint { attempt: id },
        );
        // A commit that it requested just before it was stopped is better still.
        self.grant_commit(id);
        self.cluster.refresh(id.task.job);
    }

    /// Opens the request to save the work of an attempt that was resumed for that.
    pub(super) fn save_in_slot(&mut self, id: AttemptId) {
        let Some(saving) = self.cluster.attempt_mut(id).saving.take() else {
            return;
        };
        let Saving { by, reason } = *saving;
        if by == Requester::Operator {
            self.cluster.release_hold(id);
            self.cluster.attempt_mut(id).hold = None;
        }
        self.replace_request(id, Primitive::Checkpoint, by, reason);
    }

    /// Gives up attempts that have waited long enough for a slot of their worker, while others have unwanted
    /// slots. Must be called after all possible slots are given.
    pub(super) fn convert_long_suspensions(&mut self) {
        if self.settings.preemption.chooses_by_cost() {
            self.convert_for_memory();
        } else if self.settings.preemption.convert.is_none() {
            return;
        }
        self.timers.drop_conversion();
        for kind in TaskKind::ALL {
            if !self.cluster.suspended.is_empty(kind) {
                self.convert_kind(kind);
            }
        }
    }

    fn convert_kind(&mut self, kind: TaskKind) {
        let mut due: Vec<(_, Time, AttemptId, Conversion)> = Vec::new();
        for id in self.cluster.waiting(kind) {
            let settings = &self.settings.preemption;
            let Some(rule) = settings.conversion_of(&self.cluster, id) else {
                continue;
            };
            let can = settings.can_do(self.cluster.job(id.task.job), kind);
            let saves = can.checkpoint && !self.cluster.attempts[&id].is_at_work;
            let possible = rule.to == Converted::Kill || saves;
            let now = self.cluster.now;
            let full = !self.cluster.has_slot_to_resume(id);
            let attempt = self.cluster.attempt_mut(id);
            attempt.waits_since = full.then(|| attempt.waits_since.unwrap_or(now));
            let Some(since) = attempt.waits_since.filter(|_| possible) else {
                continue;
            };
            if now < since + rule.after {
                self.timers.convert_by(since + rule.after);
            } else {
                due.push((
                    self.cluster.job(id.task.job).default_order(),
                    since,
                    id,
                    rule,
                ));
            }
        }
        due.sort_unstable_by_key(|&(order, since, id, _)| (order, since, id));
        let mut spoken_for = self.cluster.spoken_for(kind);
        for (_, _, id, rule) in due {
            let Some(place) = self.cluster.place_to_continue(id, spoken_for) else {
                continue;
            };
            spoken_for += 1;
            let worker = self.cluster.attempts[&id].worker;
            let after = rule.after.to_text();
            let reason = format!("{worker} had no slot for it for {after}, and {place} has one");
            let how = match rule.to {
                Converted::Checkpoint => Primitive::Checkpoint,
                Converted::Kill => Primitive::Kill,
            };
            self.give_up(id, how, Requester::Engine, reason);
        }
    }
}

impl Cluster {
    /// Lets a suspended attempt finish its unit of work in the next free slot of its worker and save its work then.
    fn save_in_next_slot(&mut self, id: AttemptId, by: Requester, reason: String) {
        let attempt = self.attempt_mut(id);
        attempt.saving = Some(Box::new(Saving { by, reason }));
        attempt.waits_since = None;
        self.relist(id);
        self.refresh(id.task.job);
    }

    /// Returns whether a suspended attempt that gets the next free slot can have one. A draining worker gives its
    /// slots to no others.
    pub(super) fn has_next_slot(&self, id: AttemptId) -> bool {
        let attempt = &self.attempts[&id];
        let worker = &self.workers[&attempt.worker];
        let leaves = attempt.saving.is_some() && worker.state() == WorkerState::Draining;
        self.has_slot_to_resume(id) || (leaves && worker.free(id.task.kind) > 0)
    }

    /// Returns the suspended attempts of a kind that wait for a slot.
    fn waiting(&self, kind: TaskKind) -> Vec<AttemptId> {
        let cluster = self;
        let on = cluster
            .suspended
            .workers(kind)
            .map(|worker| &cluster.workers[&worker]);
        let waits = |id: &AttemptId| {
            let attempt = &cluster.attempts[id];
            let listed = &cluster.job(id.task.job).suspended[kind];
            id.task.kind == kind && listed.contains(&(attempt.worker, *id))
        };
        on.flat_map(|worker| worker.attempts().filter(waits))
            .collect()
    }

    /// Returns how many free slots of a kind are needed by attempts that were given up and have not ended
    /// yet.
    fn spoken_for(&self, kind: TaskKind) -> usize {
        let given_up = |attempt: &&Attempt| {
            let stopped = !attempt.holds_slot && attempt.state != AttemptState::Suspended;
            stopped && attempt.id.task.kind == kind
        };
        self.attempts.values().filter(given_up).count()
    }

    /// Returns a worker with an unwanted slot for the task of a suspended attempt, after skipping
    /// `spoken_for` slots.
    fn place_to_continue(&self, id: AttemptId, spoken_for: usize) -> Option<WorkerId> {
        let cluster = self;
        let kind = id.task.kind;
        let job = cluster.job(id.task.job);
        let own = cluster.attempts[&id].worker;
        let wanted = |on: WorkerId| {
            cluster
                .demand
                .wanting(kind)
                .any(|job| cluster.job(job).wants_on(kind, on))
        };
        let mut left = spoken_for;
        for (Reverse(free), worker) in cluster.slots.free(kind).iter() {
            let known = &cluster.workers[&worker];
            let unreserved = (free - known.reserved(kind)) as usize;
            if unreserved == 0 || wanted(worker) {
                continue;
            }
            let suits = worker != own && job.is_open(kind) && !job.avoids(id.task, worker);
            if suits && unreserved > left {
                return Some(worker);
            }
            left = left.saturating_sub(unreserved);
        }
        None
    }

    /// Records how long an attempt took to start from a checkpoint or to resume.
    pub(super) fn measure_start(&mut self, id: AttemptId, input: AttemptInput) {
        let now = self.now;
        let attempt = &self.attempts[&id];
        let from = attempt.from;
        let launched = attempt.launched;
        let ordered = attempt.ordered;
        let bytes = self.job(id.task.job).spec.memory;
        let costs = &mut self.costs;
        let kind = id.task.kind;
        match (input, from) {
            (AttemptInput::Resumed, _) => costs.add_resume(kind, now.since(ordered)),
            (AttemptInput::Started, Start::Checkpoint(_)) => {
                costs.add_restore(kind, bytes, now.since(launched));
            }
            (AttemptInput::Started, _) => costs.add_launch(kind, now.since(launched)),
            _ => {}
        }
    }

    /// Records how long it took until a killed attempt's slot was free.
    pub(super) fn measure_kill(&mut self, ended: &Attempt) {
        let took = self.now.since(ended.ordered);
        self.costs.add_kill(ended.id.task.kind, took);
    }

    /// Records how long it took to checkpoint an attempt that held a slot.
    pub(super) fn measure_checkpoint(&mut self, ended: &Attempt) {
        let took = self.now.since(ended.ordered);
        let bytes = self.job(ended.id.task.job).spec.memory;
        self.costs.add_checkpoint(ended.id.task.kind, bytes, took);
    }
}
