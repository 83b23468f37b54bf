//! Reports of workers: how they reach the coordinator, and what it does with them.

use napreduce_engine::{
    Attempt, AttemptId, AttemptState, Effect, Event, Order, Report, TaskKind, Time,
};
use napreduce_protocol::PreemptionAccount;

use super::Simulation;
use super::batch::{CommitRequest, Group};
use super::checkpoints::Checkpoint;
use crate::run::SimulationError;

/// A report in transit.
#[derive(Debug, Clone)]
pub(super) struct PendingReport {
    pub place: u32,
    pub attempt: AttemptId,
    pub report: Report,
    /// The worker's preemption account, if the run is recorded.
    pub account: Option<Box<PreemptionAccount>>,
}

/// Returns the first warning of the effects, or an empty string.
fn first_warning(effects: &[Effect]) -> String {
    for effect in effects {
        if let Effect::Warn { message } = effect {
            return message.clone();
        }
    }
    String::new()
}

/// How a report reaches the coordinator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    Immediate,
    WithHeartbeat,
}

impl PendingReport {
    /// Whether it reports the end of the attempt's work.
    fn ends_work(&self) -> bool {
        matches!(
            self.report,
            Report::Done { .. } | Report::CommitRequested | Report::Failed { .. }
        )
    }

    /// Returns the group of its event.
    fn group(&self, delivery: Delivery) -> Group {
        match delivery {
            Delivery::WithHeartbeat => Group::Heartbeat,
            Delivery::Immediate if matches!(self.report, Report::Failed { .. }) => Group::Failure,
            Delivery::Immediate => Group::Report,
        }
    }
}

impl Simulation {
    /// Sends a report: immediately, or with the worker's next heartbeat.
    pub(super) fn send_report(&mut self, place: u32, report: Report) {
        let account = self.account_of(place, &report);
        let attempt = self.attempts.at(place);
        let worker = attempt.worker;
        let pending = PendingReport {
            place,
            attempt: attempt.id,
            report,
            account,
        };
        let overheads = &self.settings.overheads;
        if overheads.heartbeat.0 == 0 {
            self.receive_report(worker, pending, Delivery::Immediate);
            return;
        }
        let reports_now = overheads.out_of_band && pending.ends_work();
        self.workers.at_mut(worker).reports.push(pending);
        if reports_now {
            self.expect_heartbeat_now(worker);
        } else {
            self.expect_heartbeat(worker);
        }
    }

    /// Receives a report at the coordinator: creates an event and releases slots.
    pub(super) fn receive_report(
        &mut self,
        worker: u32,
        pending: PendingReport,
        delivery: Delivery,
    ) {
        let group = pending.group(delivery);
        let place = pending.place;
        let attempt = pending.attempt;
        let report = pending.report;
        if let Some(recorder) = &mut self.recorder {
            recorder.on_report(self.clock.now(), attempt, &report, pending.account);
        }
        // In a heartbeat, reports keep their order; otherwise they are ordered by attempt.
        let by_attempt = match delivery {
            Delivery::WithHeartbeat => None,
            Delivery::Immediate => Some(attempt),
        };
        let id = self.workers.at(worker).id;
        match report {
            Report::CommitRequested => {
                let rank = self.batch.next_rank(group, worker, by_attempt);
                self.batch.push_commit_request(CommitRequest {
                    rank,
                    worker: id,
                    attempt,
                    place,
                });
                return;
            }
            Report::Suspended => self.release_slot(place),
            Report::Done { .. } | Report::Failed { .. } | Report::Killed | Report::Checkpointed => {
                self.end_attempt(place, &report);
            }
            _ => {}
        }
        self.batch.push(
            group,
            worker,
            by_attempt,
            Event::Reported {
                worker: id,
                attempt,
                report,
            },
        );
    }

    /// Passes the batch to the engine, requests to commit first.
    pub(super) fn flush_batch(&mut self) -> Result<(), SimulationError> {
        self.grant_commits()?;
        let events = self.batch.take_events();
        if !events.is_empty() {
            let mut effects = self.engine_handles(self.clock.now(), &events)?;
            for effect in effects.drain(..) {
                self.apply(effect)?;
            }
            self.engine.reuse(effects);
        }
        self.batch.end(events);
        Ok(())
    }

    /// Passes the requests to commit to the engine. Requesting and granting a commit takes no time, so a task
    /// that ends now has ended before the other events of this instant. The engine receives the requests just
    /// before this instant: a policy or a grace that is due now decides when it knows which tasks have ended.
    fn grant_commits(&mut self) -> Result<(), SimulationError> {
        let mut requests = self.batch.take_commit_requests();
        if requests.is_empty() {
            return Ok(());
        }
        let events = self.batch.take_events_of(&requests);
        let before = Time(self.clock.now().0.saturating_sub(1));
        let just_before = before.max(self.engine.view().now());
        let mut effects = self.engine_handles(just_before, &events)?;
        for effect in effects.drain(..) {
            let granted = match effect {
                Effect::Send {
                    order: Order::Commit { attempt },
                    ..
                } => requests.find(attempt),
                _ => None,
            };
            match granted {
                Some(request) => self.commit_now(request),
                None => self.apply(effect)?,
            }
        }
        self.engine.reuse(effects);
        Ok(())
    }

    /// Commits an attempt whose request was granted immediately.
    fn commit_now(&mut self, request: CommitRequest) {
        let report = Report::Done {
            output_bytes: 0,
            output_digest: None,
        };
        self.end_attempt(request.place, &report);
        self.batch.push_ranked(
            request.rank,
            Event::Reported {
                worker: request.worker,
                attempt: request.attempt,
                report,
            },
        );
    }

    /// Passes events to the engine; returns their effects.
    fn engine_handles(
        &mut self,
        at: Time,
        events: &[Event],
    ) -> Result<Vec<Effect>, SimulationError> {
        self.run.events += events.len() as u64;
        if let Some(log) = &mut self.log {
            log.events(self.clock.now(), events)?;
        }
        let effects = self.engine.handle_batch(at, events);
        if self.engine.view().tally().wakes_put_off > 0 {
            return Err(SimulationError::Untimely {
                at: self.clock.now(),
                message: first_warning(&effects),
            });
        }
        if let Some(log) = &mut self.log {
            log.effects(&effects)?;
        }
        Ok(effects)
    }

    /// Releases the slot of a suspended attempt at the coordinator.
    fn release_slot(&mut self, place: u32) {
        let attempt = self.attempts.at_mut(place);
        let id = attempt.id;
        let known = self.engine.view().attempt(id).map(Attempt::state);
        if known != Some(AttemptState::Suspending) {
            // A kill is in progress; it holds its slot until that is done.
            return;
        }
        attempt.charge(self.clock.now(), &mut self.run.slot_time);
        attempt.holds_slot = false;
        self.slot_freed(id);
    }

    /// Accounts the work of an ended attempt and removes it.
    fn end_attempt(&mut self, place: u32, report: &Report) {
        let attempt = self.attempts.at_mut(place);
        attempt.charge(self.clock.now(), &mut self.run.slot_time);
        let id = attempt.id;
        let executed = attempt.executed();
        let holds_slot = attempt.holds_slot;
        let lost = match report {
            Report::Done { .. } => {
                // Its work counts as lost until the engine completes the task, since another attempt may have
                // been first.
                self.batch.complete(id, executed);
                executed
            }
            Report::Checkpointed => self.keep_checkpoint(place),
            _ => {
                // What its suspends saved is lost after all.
                self.run.slot_time.saved -= attempt.preserved - attempt.done_before;
                executed
            }
        };
        self.waste(id.task.job, lost);
        self.free_machine_slot(place);
        if holds_slot {
            self.slot_freed(id);
        }
        self.remove_attempt(place);
    }

    /// Keeps the checkpoint of an ended attempt. Returns the work that is lost.
    fn keep_checkpoint(&mut self, place: u32) -> u64 {
        let loss_max = self.settings.overheads.checkpoint_loss.0;
        let attempt = self.attempts.at(place);
        let task = attempt.id.task;
        let lost = attempt.executed().min(loss_max);
        let checkpoint = Checkpoint {
            worker: attempt.worker,
            done: attempt.done - lost,
        };
        let job = self.jobs.at_mut(task.job);
        job.result.preemptions.checkpoint += 1;
        self.run.slot_time.saved += attempt.done - attempt.preserved;
        self.run.slot_time.saved -= lost;
        if attempt.done_before == 0 {
            let dropped = job.add_checkpoint(task, checkpoint);
            self.waste(task.job, dropped);
        } else {
            job.replace_checkpoint(task, checkpoint);
        }
        lost
    }

    /// Removes an attempt from all lists.
    pub(super) fn remove_attempt(&mut self, place: u32) {
        let attempt = self.attempts.at(place);
        let task = attempt.id.task;
        let position = attempt.reduce_position;
        self.workers.at_mut(attempt.worker).remove(place);
        if task.kind == TaskKind::Reduce {
            let moved = self.jobs.at_mut(task.job).remove_reduce(position);
            if let Some(moved) = moved {
                self.attempts.at_mut(moved).reduce_position = position;
            }
        }
        self.attempts.remove(place);
    }

    /// Records that a job holds another slot, in the view of the coordinator.
    pub(super) fn slot_taken(&mut self, id: AttemptId) {
        self.run.slot_time.slot_taken(id.task.kind);
        self.held_slots_change(id, 1);
    }

    /// Records that a job holds a slot less, in the view of the coordinator.
    pub(super) fn slot_freed(&mut self, id: AttemptId) {
        self.run.slot_time.slot_freed(id.task.kind);
        self.held_slots_change(id, -1);
    }

    fn held_slots_change(&mut self, id: AttemptId, change: i32) {
        let now = self.clock.now();
        let job = id.task.job;
        let kind = id.task.kind;
        if kind == TaskKind::Reduce
            && let Some(job) = self.jobs.get_mut(job)
        {
            job.change_reduce_slots(now, change);
        }
        if self.settings.record_allocation {
            self.run.allocation.change(now, job, kind, change);
        }
    }
}
