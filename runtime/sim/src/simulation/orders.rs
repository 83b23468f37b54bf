//! What the engine wants done: orders on their way to workers, and what they do there.
//!
//! Owns the way of an order and what it meets on arrival. Does not own how long anything takes: `work` does.

use napreduce_engine::{AttemptId, Effect, Order, Record, Report, Start, TaskKind};

use super::Simulation;
use super::attempts::{Phase, VirtualAttempt};
use super::queue::{Due, OrderKind};
use crate::run::SimulationError;

impl Simulation {
    /// Carries out one effect of the engine.
    pub(super) fn apply(&mut self, effect: Effect) -> Result<(), SimulationError> {
        if let Effect::Record(record) = &effect {
            self.guard.note(record);
        }
        self.record(&effect);
        match effect {
            Effect::Record(Record::TaskDone(attempt)) => self.task_done(attempt),
            Effect::Record(Record::OutputLost(task)) => self.output_lost(task),
            Effect::Record(_) => {}
            Effect::Send { worker, order } => {
                let worker = worker.0 - 1;
                match order {
                    Order::Launch { attempt, from, .. } => self.launch(worker, attempt, from),
                    Order::Commit { attempt } => self.commit(worker, attempt),
                    Order::Resume { attempt } => self.send_resume(worker, attempt),
                    Order::Suspend { attempt } => self.send_to(worker, attempt, OrderKind::Suspend),
                    Order::Checkpoint { attempt } => self.send_to(worker, attempt, OrderKind::Checkpoint),
                    Order::Kill { attempt } => self.send_kill(worker, attempt),
                    // Reduces see new outputs by themselves.
                    // Nobody ends a simulated worker from outside.
                    Order::MoreInputs { .. } | Order::MoveOutput { .. } => {}
                }
            }
            Effect::WakeAt(time) => {
                self.armed = Some(time);
                self.queue.push(time, Due::Wake);
            }
            Effect::JobEnded { job, outcome } => self.job_ended(job, &outcome)?,
            Effect::SubmitWanted { name } => self.submit_triggered(name)?,
            Effect::WorkerMayLeave { .. } => {}
            Effect::Warn { message } => {
                self.run.warnings += 1;
                self.run.last_warning = Some(message);
            }
        }
        Ok(())
    }

    /// A new attempt takes a slot; the order to start it leaves.
    fn launch(&mut self, worker: u32, id: AttemptId, from: Start) {
        let (now, kind, index) = (self.now, id.task.kind, id.task.index);
        let job = self.jobs.at_mut(id.task.job);
        let kept = match from {
            Start::Checkpoint(_) => job.checkpoints.get(&(kind, index)).copied(),
            // A duplicate begins anew, and the checkpoint stays for the attempt beside it.
            Start::Fresh
                if self.engine.view().attempt(id).is_some_and(|one| one.duplicate_of().is_some()) =>
            {
                None
            }
            Start::Fresh => {
                let given_up = job.checkpoints.remove(&(kind, index)).map_or(0, |kept| kept.done);
                self.run.books.wasted += given_up;
                job.result.wasted.0 += given_up;
                None
            }
        };
        let (done, restores) = kept.map_or((0, None), |kept| (kept.done, Some(kept.worker)));
        let mut attempt = VirtualAttempt::ordered(id, worker, now, &job.plan, done, restores);
        let loss = if job.is_master() { 0.0 } else { self.settings.failures.attempt };
        let fails_after = super::failures::fails_after(self.settings.seed, id, loss, attempt.total - done);
        attempt.fails_at = fails_after.map_or(u64::MAX, |work| done + work);
        if kind == TaskKind::Reduce {
            job.reduce_launched(now);
        }
        let place = self.attempts.insert(attempt);
        if kind == TaskKind::Reduce {
            self.attempts.at_mut(place).place = self.jobs.at_mut(id.task.job).add_reduce(place);
        }
        let known = &mut self.workers[worker as usize];
        known.take_slot(kind);
        known.attempts.push(place);
        self.slot_taken(id);
        self.send(place, OrderKind::Launch);
    }

    /// An attempt that waited for its turn to commit has it.
    fn commit(&mut self, worker: u32, id: AttemptId) {
        if let Some(place) = self.workers[worker as usize].find(id, &self.attempts) {
            self.attempt_commits(place);
        }
    }

    /// A suspended attempt has a slot again; the order to go on leaves.
    fn send_resume(&mut self, worker: u32, id: AttemptId) {
        let Some(place) = self.workers[worker as usize].find(id, &self.attempts) else { return };
        let attempt = self.attempts.at_mut(place);
        attempt.charge(self.now, &mut self.run.books);
        attempt.holds_slot = true;
        attempt.phase = Phase::ResumeOrdered;
        attempt.occupies = true;
        self.workers[worker as usize].take_slot(id.task.kind);
        self.slot_taken(id);
        self.send(place, OrderKind::Resume);
    }

    /// An attempt is to be killed; one that was to give up its slot by this is counted.
    fn send_kill(&mut self, worker: u32, id: AttemptId) {
        if self.engine.view().request(id).is_some() {
            self.jobs.at_mut(id.task.job).result.preemptions.kill += 1;
        }
        self.send_to(worker, id, OrderKind::Kill);
    }

    fn send_to(&mut self, worker: u32, id: AttemptId, order: OrderKind) {
        if let Some(place) = self.workers[worker as usize].find(id, &self.attempts) {
            self.send(place, order);
        }
    }

    /// Sends an order: now, or in the answer to the next heartbeat of the worker.
    fn send(&mut self, place: u32, order: OrderKind) {
        let attempt = self.attempts.at(place);
        let (worker, life) = (attempt.worker, attempt.life);
        if self.speaks_now(worker) {
            self.leave(place, life, order);
        } else {
            self.workers[worker as usize].orders.push((place, life, order));
            self.expect_heartbeat(worker, false);
        }
    }

    /// An order leaves for its worker.
    pub(super) fn leave(&mut self, place: u32, life: u32, order: OrderKind) {
        let latency = self.settings.overheads.order_latency;
        if latency.0 == 0 {
            self.arrive(place, life, order);
        } else {
            self.queue.push(self.now + latency, Due::Arrives { attempt: place, life, order });
        }
    }

    /// An order acts on its attempt, if that is still there.
    pub(super) fn arrive(&mut self, place: u32, life: u32, order: OrderKind) {
        let attempt = self.attempts.at(place);
        if attempt.life != life || attempt.phase == Phase::Gone {
            return;
        }
        match (order, attempt.phase) {
            (OrderKind::Launch, Phase::Ordered) => self.start(place),
            (OrderKind::Kill, _) => self.kill(place),
            (OrderKind::Suspend, Phase::Working | Phase::Fetching | Phase::Ended) => self.suspend(place),
            (OrderKind::Checkpoint, Phase::Working | Phase::Fetching) => self.save(place),
            (OrderKind::Checkpoint, Phase::Suspended) => self.wake_to_save(place),
            (OrderKind::Resume, Phase::ResumeOrdered) => self.resume(place),
            // It has ended, or is on its way out by an order that came before.
            _ => {}
        }
    }

    /// A worker speaks with the coordinator at this moment, so that an order reaches it with the answer.
    fn speaks_now(&mut self, worker: u32) -> bool {
        let period = self.settings.overheads.heartbeat.0;
        if period == 0 {
            return true;
        }
        let known = &mut self.workers[worker as usize];
        let now = known.answered == Some(self.now) || self.now.0.is_multiple_of(period);
        if now {
            known.answered = Some(self.now);
        }
        now
    }

    /// Sees to it that a worker speaks at its next heartbeat, or at once.
    pub(super) fn expect_heartbeat(&mut self, worker: u32, at_once: bool) {
        let period = self.settings.overheads.heartbeat;
        let known = &mut self.workers[worker as usize];
        let this = self.now.0.checked_next_multiple_of(period.0).unwrap_or(u64::MAX);
        let answered_now = known.answered == Some(self.now);
        let next = if at_once {
            self.now
        } else if this == self.now.0 && answered_now {
            self.now + period
        } else {
            napreduce_engine::Time(this)
        };
        if known.beat.is_none_or(|beat| next < beat) {
            known.beat = Some(next);
            if next == self.now {
                self.beats.push(worker);
            } else {
                self.queue.push(next, Due::Heartbeat { worker });
            }
        }
    }

    /// A worker speaks: its reports are heard, and the orders that waited leave with the answer.
    pub(super) fn heartbeat(&mut self, worker: u32) {
        let known = &mut self.workers[worker as usize];
        if !known.up || known.beat != Some(self.now) {
            return;
        }
        known.beat = None;
        known.answered = Some(self.now);
        let reports = std::mem::take(&mut known.reports);
        let orders = std::mem::take(&mut known.orders);
        for (position, told) in (0..).zip(reports) {
            self.hear(worker, told, Some(position));
        }
        for (place, life, order) in orders {
            self.leave(place, life, order);
        }
    }

    /// The report of an attempt that fails by the seed.
    pub(super) fn failed() -> Report {
        Report::Failed {
            class: napreduce_engine::FailureClass::Task,
            place: napreduce_engine::FaultPlace::UserCode,
            reason: "it failed as the simulation wanted".to_owned(),
            lost_outputs: Vec::new(),
        }
    }
}
