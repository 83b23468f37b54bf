//! The effects of the engine, and the delivery of its orders to virtual workers.

use napreduce_engine::{AttemptId, Effect, Order, Record, Start, TaskKind};

use super::Simulation;
use super::attempts::{Phase, VirtualAttempt};
use super::checkpoints::Checkpoint;
use super::clock::{OrderKind, SentOrder, TimedEvent};
use super::failures::fails_after;
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
            Effect::Send { worker, order } => self.obey(Workers::position_of(worker), order),
            Effect::WakeAt(time) => self.clock.wake_at(time),
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

    /// Carries out an order of the engine to a worker.
    fn obey(&mut self, worker: u32, order: Order) {
        match order {
            Order::Launch { attempt, from, .. } => self.launch(worker, attempt, from),
            Order::Commit { attempt } => self.commit(worker, attempt),
            Order::Resume { attempt } => self.send_resume(worker, attempt),
            Order::Suspend { attempt } => self.send_to(worker, attempt, OrderKind::Suspend),
            Order::Checkpoint { attempt } => self.send_to(worker, attempt, OrderKind::Checkpoint),
            Order::Kill { attempt } => self.send_kill(worker, attempt),
            // Reduces see new outputs without an order, and simulated workers are never drained.
            Order::MoreInputs { .. } | Order::MoveOutput { .. } => {}
        }
    }

    /// Launches a new attempt: takes a slot and sends the order.
    fn launch(&mut self, worker: u32, id: AttemptId, from: Start) {
        let now = self.clock.now();
        let task = id.task;
        let checkpoint = self.checkpoint_for(id, from);
        let job = self.jobs.at_mut(task.job);
        let mut attempt = VirtualAttempt::ordered(id, worker, now, &job.plan, checkpoint);
        if !job.is_master() {
            let probability = self.settings.failures.attempt;
            let left = attempt.total - attempt.done;
            if let Some(work) = fails_after(self.settings.seed, id, probability, left) {
                attempt.fails_at = attempt.done + work;
            }
        }
        let place = self.attempts.insert(attempt);
        if task.kind == TaskKind::Reduce {
            job.reduce_launched(now);
            self.attempts.at_mut(place).reduce_position = job.add_reduce(place);
        }
        let worker = self.workers.at_mut(worker);
        worker.take_slot(task.kind);
        worker.attempts.push(place);
        self.slot_taken(id);
        self.send(place, OrderKind::Launch);
    }

    /// Returns the checkpoint from which an attempt starts, if it does. Discards the checkpoint of a task that
    /// starts over.
    fn checkpoint_for(&mut self, id: AttemptId, from: Start) -> Option<Checkpoint> {
        let task = id.task;
        match from {
            Start::Checkpoint(_) => self.jobs.at(task.job).checkpoint_of(task),
            Start::Fresh => {
                // A duplicate starts over; the checkpoint remains for the original.
                if !self.is_duplicate(id) {
                    let discarded = self.jobs.at_mut(task.job).remove_checkpoint(task);
                    self.waste(task.job, discarded);
                }
                None
            }
        }
    }

    /// Whether an attempt runs beside another one of its task.
    fn is_duplicate(&self, id: AttemptId) -> bool {
        let attempt = self.engine.view().attempt(id);
        attempt.is_some_and(|attempt| attempt.duplicate_of().is_some())
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

    /// Sends an order to an attempt on a worker, if it has not ended.
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
}
