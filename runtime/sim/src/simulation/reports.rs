//! Reports of workers: how they reach the coordinator, and what it does with them.

use napreduce_engine::{AttemptId, AttemptState, Effect, Event, Order, Report, TaskKind, Time};
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
        if self.settings.overheads.heartbeat.0 == 0 {
            self.receive_report(worker, pending, None);
        } else {
            let ends = matches!(
                pending.report,
                Report::Done { .. } | Report::CommitRequested | Report::Failed { .. }
            );
            self.workers.at_mut(worker).reports.push(pending);
            if ends && self.settings.overheads.out_of_band {
                self.expect_heartbeat_now(worker);
            } else {
                self.expect_heartbeat(worker);
            }
        }
    }

    /// Receives a report at the coordinator: creates an event and releases slots.
    pub(super) fn receive_report(
        &mut self,
        worker: u32,
        pending: PendingReport,
        heartbeat: Option<u64>,
    ) {
        let PendingReport {
            place,
            attempt,
            report,
            account,
        } = pending;
        if let Some(recorder) = &mut self.recorder {
            recorder.on_report(self.clock.now(), attempt, &report, account);
        }
        let group = match (&heartbeat, &report) {
            (Some(_), _) => Group::Heartbeat,
            (None, Report::Failed { .. }) => Group::Failure,
            (None, _) => Group::Report,
        };
        // In a heartbeat, reports keep their order; otherwise they are ordered by attempt.
        let by_attempt = heartbeat.is_none().then_some(attempt);
        match report {
            Report::CommitRequested => {
                let rank = self.batch.next_rank(group, worker, by_attempt);
                self.batch.push_commit_request(CommitRequest {
                    rank,
                    worker: self.workers.at(worker).id,
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
        let id = self.workers.at(worker).id;
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
            let warning = effects.iter().find_map(|effect| match effect {
                Effect::Warn { message } => Some(message.clone()),
                _ => None,
            });
            return Err(SimulationError::Untimely {
                at: self.clock.now(),
                message: warning.unwrap_or_default(),
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
        let known = self
            .engine
            .view()
            .attempt(attempt.id)
            .map(|known| known.state());
        if known != Some(AttemptState::Suspending) {
            // A kill is in progress; it holds its slot until that is done.
            return;
        }
        attempt.charge(self.clock.now(), &mut self.run.slot_time);
        attempt.holds_slot = false;
        let id = attempt.id;
        self.slot_freed(id);
    }

    /// Accounts the work of an ended attempt and removes it.
    pub(super) fn end_attempt(&mut self, place: u32, report: &Report) {
        let attempt = self.attempts.at_mut(place);
        attempt.charge(self.clock.now(), &mut self.run.slot_time);
        let id = attempt.id;
        let worker = attempt.worker;
        let executed = attempt.executed();
        let held = attempt.holds_slot;
        let done = attempt.done;
        let started_fresh = attempt.done_before == 0;
        // The work that suspensions of the attempt saved, and the work since the last of them.
        let saved_before = attempt.preserved - attempt.done_before;
        let since_saved = attempt.done - attempt.preserved;
        // Its work counts as lost until the engine completes the task, since another attempt may have been
        // first.
        let mut lost = executed;
        match report {
            Report::Done { .. } => {
                self.batch.complete(id, executed);
            }
            Report::Checkpointed => {
                lost = executed.min(self.settings.overheads.checkpoint_loss.0);
                let checkpoint = Checkpoint {
                    worker,
                    done: done - lost,
                };
                let job = self.jobs.at_mut(id.task.job);
                if started_fresh {
                    let dropped = job.add_checkpoint(id.task, checkpoint);
                    self.run.slot_time.wasted += dropped;
                    job.result.wasted.0 += dropped;
                } else {
                    job.replace_checkpoint(id.task, checkpoint);
                }
                job.result.preemptions.checkpoint += 1;
                self.run.slot_time.saved += since_saved;
                self.run.slot_time.saved -= lost;
            }
            _ => self.run.slot_time.saved -= saved_before,
        }
        self.run.slot_time.wasted += lost;
        self.jobs.at_mut(id.task.job).result.wasted.0 += lost;
        self.free_machine_slot(place);
        if held {
            self.slot_freed(id);
        }
        self.remove_attempt(place);
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
