//! The delivery of the engine's orders to virtual workers.

use napreduce_engine::{AttemptId, Effect, Order, Record, Report, Start, TaskKind};

use super::Simulation;
use super::attempts::{Phase, VirtualAttempt};
use super::clock::{OrderKind, SentOrder, TimedEvent};
use super::workers::Workers;
use crate::run::SimulationError;

impl Simulation {
    /// Carries out one effect of the engine.
    pub(super) fn apply(&mut self, effect: Effect) -> Result<(), SimulationError> {
        if let Effect::Record(record) = &effect {
            self.guard.record(record);
        }
        self.record_effect(&effect);
        match effect {
            Effect::Record(Record::TaskDone(attempt)) => self.task_done(attempt),
            Effect::Record(Record::OutputLost(task)) => self.output_lost(task),
            Effect::Record(_) => {}
            Effect::Send { worker, order } => {
                let worker = Workers::position_of(worker);
                match order {
                    Order::Launch { attempt, from, .. } => self.launch(worker, attempt, from),
                    Order::Commit { attempt } => self.commit(worker, attempt),
                    Order::Resume { attempt } => self.send_resume(worker, attempt),
                    Order::Suspend { attempt } => self.send_to(worker, attempt, OrderKind::Suspend),
                    Order::Checkpoint { attempt } => {
                        self.send_to(worker, attempt, OrderKind::Checkpoint)
                    }
                    Order::Kill { attempt } => self.send_kill(worker, attempt),
                    // Reduces see new outputs without an order, and simulated workers are never drained.
                    Order::MoreInputs { .. } | Order::MoveOutput { .. } => {}
                }
            }
            Effect::WakeAt(time) => {
                self.clock.wake_at(time);
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

    /// Launches a new attempt: takes a slot and sends the order.
    fn launch(&mut self, worker: u32, id: AttemptId, from: Start) {
        let now = self.clock.now();
        let kind = id.task.kind;
        let job = self.jobs.at_mut(id.task.job);
        let checkpoint = match from {
            Start::Checkpoint(_) => job.checkpoint_of(id.task),
            // A duplicate starts over; the checkpoint remains for the original.
            Start::Fresh
                if self
                    .engine
                    .view()
                    .attempt(id)
                    .is_some_and(|one| one.duplicate_of().is_some()) =>
            {
                None
            }
            Start::Fresh => {
                let discarded = job.remove_checkpoint(id.task);
                self.run.slot_time.wasted += discarded;
                job.result.wasted.0 += discarded;
                None
            }
        };
        let (done, restores) = checkpoint.map_or((0, None), |checkpoint| {
            (checkpoint.done, Some(checkpoint.worker))
        });
        let mut attempt = VirtualAttempt::ordered(id, worker, now, &job.plan, done, restores);
        let loss = if job.is_master() {
            0.0
        } else {
            self.settings.failures.attempt
        };
        let fails_after =
            super::failures::fails_after(self.settings.seed, id, loss, attempt.total - done);
        attempt.fails_at = fails_after.map_or(u64::MAX, |work| done + work);
        if kind == TaskKind::Reduce {
            job.reduce_launched(now);
        }
        let place = self.attempts.insert(attempt);
        if kind == TaskKind::Reduce {
            self.attempts.at_mut(place).reduce_position =
                self.jobs.at_mut(id.task.job).add_reduce(place);
        }
        let known = self.workers.at_mut(worker);
        known.take_slot(kind);
        known.attempts.push(place);
        self.slot_taken(id);
        self.send(place, OrderKind::Launch);
    }

    /// Grants an attempt's commit.
    fn commit(&mut self, worker: u32, id: AttemptId) {
        if let Some(place) = self.workers.at(worker).find(id, &self.attempts) {
            self.attempt_commits(place);
        }
    }

    /// Resumes a suspended attempt: takes a slot and sends the order.
    fn send_resume(&mut self, worker: u32, id: AttemptId) {
        let Some(place) = self.workers.at(worker).find(id, &self.attempts) else {
            return;
        };
        let attempt = self.attempts.at_mut(place);
        attempt.charge(self.clock.now(), &mut self.run.slot_time);
        attempt.holds_slot = true;
        attempt.phase = Phase::ResumeOrdered;
        attempt.occupies_slot = true;
        self.workers.at_mut(worker).take_slot(id.task.kind);
        self.slot_taken(id);
        self.send(place, OrderKind::Resume);
    }

    /// Sends a kill; counts it as a preemption if a request ordered it.
    fn send_kill(&mut self, worker: u32, id: AttemptId) {
        if self.engine.view().is_killed_by_request(id) {
            self.jobs.at_mut(id.task.job).result.preemptions.kill += 1;
        }
        self.send_to(worker, id, OrderKind::Kill);
    }

    fn send_to(&mut self, worker: u32, id: AttemptId, kind: OrderKind) {
        if let Some(place) = self.workers.at(worker).find(id, &self.attempts) {
            self.send(place, kind);
        }
    }

    /// Sends an order: immediately, or in the reply to the worker's next heartbeat.
    fn send(&mut self, place: u32, kind: OrderKind) {
        let attempt = self.attempts.at(place);
        let worker = attempt.worker;
        let order = SentOrder {
            place,
            generation: attempt.generation,
            kind,
        };
        if self.is_in_contact(worker) {
            self.dispatch_order(order);
        } else {
            self.workers.at_mut(worker).orders.push(order);
            self.expect_heartbeat(worker);
        }
    }

    /// Puts an order in transit.
    pub(super) fn dispatch_order(&mut self, order: SentOrder) {
        let latency = self.settings.overheads.order_latency;
        if latency.0 == 0 {
            self.arrive(order);
        } else {
            self.clock
                .schedule_after(latency, TimedEvent::OrderArrives(order));
        }
    }

    /// Applies an order to its attempt, if that still exists.
    pub(super) fn arrive(&mut self, order: SentOrder) {
        let place = order.place;
        let attempt = self.attempts.at(place);
        if attempt.generation != order.generation || attempt.phase == Phase::Gone {
            return;
        }
        match (order.kind, attempt.phase) {
            (OrderKind::Launch, Phase::Ordered) => self.start(place),
            (OrderKind::Kill, _) => self.kill(place),
            (OrderKind::Suspend, Phase::Working | Phase::Fetching | Phase::Ended) => {
                self.suspend(place)
            }
            (OrderKind::Checkpoint, Phase::Working | Phase::Fetching) => self.save(place),
            (OrderKind::Checkpoint, Phase::Suspended) => self.wake_to_save(place),
            (OrderKind::Resume, Phase::ResumeOrdered) => self.resume(place),
            // The attempt has ended or obeys an earlier order.
            _ => {}
        }
    }

    /// Whether an order reaches the worker immediately.
    fn is_in_contact(&mut self, worker: u32) -> bool {
        let period = self.settings.overheads.heartbeat;
        let now = self.clock.now();
        period.0 == 0 || self.workers.at_mut(worker).make_contact(now, period)
    }

    /// The report of an attempt that fails at random.
    pub(super) fn injected_failure() -> Report {
        Report::Failed {
            class: napreduce_engine::FailureClass::Task,
            place: napreduce_engine::FaultPlace::UserCode,
            reason: "simulated failure".to_owned(),
            lost_outputs: Vec::new(),
            disk_need: None,
        }
    }
}
