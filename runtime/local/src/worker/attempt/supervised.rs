//! A running task process: orders to it, messages from it, and its end.
//!
//! ```text
//! spawned --Hello--> Started --CommitRequest--> CommitRequested --(Commit order)--> granted
//!    any state: process ended -> channel drained, group killed, reaped -> Ended
//!    any state: Kill order -> group killed, then as above
//! ```

use std::time::Duration;

use napreduce_engine::{Order, Report};
use napreduce_protocol::{
    FromTask, MapInput, PROTOCOL_VERSION, PartOutput, Preempted, PreemptionAccount, TaskError,
    ToTask, whole_micros, whole_nanos,
};
use tokio::io::Interest;
use tokio::time::Instant;

use super::super::hang::HangWatch;
use super::super::isolation::Bounds;
use super::super::ticks::ticks;
use super::end::{Death, with_bounds};
use super::line::ControlLine;
use super::preemption::{Input, Preemption, Stage, Step};
use super::suspension::Suspension;
use super::{AttemptEnd, AttemptEvent, AttemptOrder, Supervision};
use crate::clock::now;
use crate::process::TaskProcess;
use crate::world::{Situation, reached};

/// Maximum interval between checks of a process, which also truncate its logs.
const CHECK_INTERVAL_MAX: Duration = Duration::from_millis(250);

/// A running process and the messages received from it.
pub(super) struct Supervised {
    process: Box<dyn TaskProcess>,
    line: ControlLine,
    watch: HangWatch,
    /// When the process was checked last.
    checked: Instant,
    preemption: Preemption,
    suspension: Suspension,
    /// Inputs announced while the process was stopped. They are not written to its channel, so that the
    /// resume message fits.
    deferred: Vec<MapInput>,
    /// Time of the kill order and the memory held then.
    killed: Option<(Instant, PreemptionAccount)>,
    saved_bytes: u64,
    part: Option<PartOutput>,
    outcome: Option<AttemptEnd>,
    /// The kernel's OOM-kill count when the process started.
    oom_kills: u64,
}

impl Supervised {
    pub(super) fn begin(
        process: Box<dyn TaskProcess>,
        line: ControlLine,
        supervision: &Supervision,
    ) -> Supervised {
        Supervised {
            process,
            line,
            watch: HangWatch::new(supervision.limits),
            checked: now(),
            preemption: Preemption::default(),
            suspension: Suspension::new(supervision),
            deferred: Vec::new(),
            killed: None,
            saved_bytes: 0,
            part: None,
            outcome: None,
            oom_kills: supervision.processes.oom_kills(),
        }
    }

    pub(super) async fn run(mut self, supervision: &mut Supervision) -> AttemptEnd {
        let mut checks = ticks(self.watch.interval().min(CHECK_INTERVAL_MAX));
        loop {
            let interest = self.line.interest();
            let control = self.process.control();
            tokio::select! {
                biased;
                order = supervision.orders.recv() => match order {
                    Some(AttemptOrder { order: Order::Kill { .. }, .. }) | None => {
                        self.kill();
                        break;
                    }
                    Some(AttemptOrder { order, inputs }) => self.follow(order, inputs, supervision),
                },
                input = self.suspension.next() => match input {
                    Ok(input) => self.step(input, supervision),
                    Err(error) => self.give_up(&format!(
                        "cannot see whether the task process stopped: {error}"
                    )),
                },
                ready = control.ready(interest.unwrap_or(Interest::READABLE)), if interest.is_some() => {
                    let exchanged = ready.and_then(|()| self.line.send_waiting(self.process.control()));
                    if let Err(error) = exchanged {
                        self.give_up(&format!("control channel: {error}"));
                    }
                    while self.receive(supervision) {}
                }
                ended = self.process.ended() => {
                    if let Err(error) = ended {
                        self.give_up(&format!("cannot watch the task process: {error}"));
                    }
                    break;
                }
                _ = checks.tick() => self.check(supervision),
            }
        }
        self.finish(supervision).await
    }

    /// Kills a hanging process, bounds its logs, and stops what runs of a suspended one.
    fn check(&mut self, supervision: &mut Supervision) {
        if matches!(self.preemption.stage(), Stage::Suspended { .. })
            && !self.process.stands_still()
        {
            self.step(Input::Continued, supervision);
        }
        if let Some(logs) = &mut supervision.logs {
            logs.keep_bound();
        }
        self.suspension.follow_swap(self.process.id());
        let passed = self.checked.elapsed();
        self.checked += passed;
        // After its final message or a kill order, only the end of the process is awaited.
        if self.outcome.is_some() {
            return;
        }
        if let Some(bounds) = &supervision.bounds
            && bounds.are_exceeded_by(&*supervision.processes, self.process.id())
        {
            self.fail(bounds.error());
        } else if let Some(hang) = self.watch.on_tick(passed) {
            reached(Situation::HangEnded);
            self.give_up(&self.watch.describe(hang));
        }
    }

    fn kill(&mut self) {
        reached(killed_in(self.preemption.stage()));
        let account = self.suspension.take_kill_account(self.process.id());
        self.killed = Some((now(), account));
        self.process.kill();
    }

    fn follow(&mut self, order: Order, inputs: Vec<MapInput>, supervision: &Supervision) {
        tracing::debug!(target: "worker", "{order:?}");
        match order {
            Order::Commit { .. } => {
                self.watch.set_waits(false);
                self.send(&ToTask::CommitGranted);
                self.step(Input::Granted, supervision);
            }
            Order::MoreInputs { .. } if self.preemption.is_stopped() => {
                reached(Situation::InputsDeferred);
                self.deferred.extend(inputs);
            }
            Order::MoreInputs { .. } => self.send(&ToTask::MoreInputs(inputs)),
            Order::Suspend { .. } | Order::Resume { .. } | Order::Checkpoint { .. } => {
                self.preempt(order, supervision);
            }
            // It is launched already, a kill ends the loop, and only a finished attempt has an output to
            // move.
            Order::Launch { .. } | Order::Kill { .. } | Order::MoveOutput { .. } => {}
        }
    }

    fn preempt(&mut self, order: Order, supervision: &Supervision) {
        if matches!(order, Order::Suspend { .. })
            && self.preemption.stage() == Stage::Running
            && let Err(refusal) = self.suspension.admit(self.process.id())
        {
            return supervision.report(Report::SuspendRefused {
                reason: refusal.to_string(),
            });
        }
        match (&order, self.preemption.stage()) {
            (Order::Checkpoint { .. }, Stage::Running) => reached(Situation::CheckpointedRunning),
            (Order::Checkpoint { .. }, Stage::Suspended { .. }) => {
                reached(Situation::CheckpointedSuspended);
            }
            _ => {}
        }
        self.suspension.on_order();
        self.step(Input::Ordered(order), supervision);
    }

    /// Carries out the steps that follow from an input, and ensures that a stopped process is watched.
    fn step(&mut self, input: Input, supervision: &Supervision) {
        let before = self.preemption.stage();
        let process = &*self.process;
        let wants_self_paging = || self.suspension.wants_self_paging(process);
        match self.preemption.on(input, &wants_self_paging) {
            Ok(steps) => {
                for step in steps {
                    self.carry_out(step, supervision);
                }
            }
            Err(illegal) => {
                self.suspension.forget_order();
                tracing::warn!(target: "worker", "{illegal}");
            }
        }
        let now = self.preemption.stage();
        if now != before && matches!(now, Stage::Suspended { .. }) {
            self.suspension.await_continuation(&*self.process);
        }
    }

    fn carry_out(&mut self, step: Step, supervision: &Supervision) {
        let process = &*self.process;
        match step {
            Step::Send(message) => {
                if matches!(message, ToTask::Suspend { .. }) {
                    process.note_stopped();
                }
                self.send_now(&message);
                if matches!(message, ToTask::Suspend { .. }) {
                    self.suspension.begin_grace();
                    self.watch.pause();
                }
            }
            Step::Stop => {
                self.process.suspend();
                self.suspension.await_stop(process);
            }
            Step::ReportSuspended { saves } => {
                self.suspension.on_suspended(process);
                // Before the slot is reported free, so that the account contains the reason if nothing is
                // moved.
                self.suspension.begin_paging_out(process);
                self.account(Preempted::Suspended, supervision);
                supervision.report(if saves {
                    Report::Suspended
                } else {
                    Report::SuspendedAtWork
                });
            }
            Step::Prefetch => {
                if !self.suspension.begin_prefetch(process) {
                    self.step(Input::Prefetched, supervision);
                }
            }
            Step::Continue => self.resume(),
            Step::ReportResumed => {
                self.account(Preempted::Resumed, supervision);
                supervision.report(Report::Resumed);
            }
            Step::ReportRefused { obstacle } => {
                self.suspension.drop_order();
                let reason = obstacle.unwrap_or_else(|| "its process did not stop".to_owned());
                supervision.report(Report::SuspendRefused { reason });
            }
        }
    }

    /// Sends the resume message with the stopped time before SIGCONT, so that the task reads it first.
    fn resume(&mut self) {
        let stopped = self.suspension.on_continue(&*self.process);
        let suspended_nanos = whole_nanos(stopped);
        let epoch = self.preemption.epoch;
        self.send(&ToTask::Resume {
            epoch,
            suspended_nanos,
        });
        if !self.deferred.is_empty() {
            let inputs = std::mem::take(&mut self.deferred);
            self.send(&ToTask::MoreInputs(inputs));
        }
        self.flush();
        self.watch.resume(self.suspension.resume_grace());
        self.process.resume();
    }

    fn send(&mut self, message: &ToTask) {
        if let Err(error) = self.line.put(message) {
            self.give_up(&error.to_string());
        }
    }

    /// Sends a message without a turn of the loop.
    fn send_now(&mut self, message: &ToTask) {
        self.send(message);
        self.flush();
    }

    fn flush(&mut self) {
        if let Err(error) = self.line.send_waiting(self.process.control()) {
            self.give_up(&format!("control channel: {error}"));
        }
    }

    /// Processes received messages; returns whether there may be more to read.
    fn receive(&mut self, supervision: &Supervision) -> bool {
        let received = match self.line.receive(self.process.control()) {
            Ok(received) => received,
            Err(error) => {
                self.give_up(&format!("control channel: {error}"));
                return false;
            }
        };
        for message in received.messages {
            self.on_message(message, supervision);
        }
        if let Some(broken) = received.broken {
            self.give_up(&broken);
        }
        received.more && self.line.is_open
    }

    fn on_message(&mut self, message: FromTask, supervision: &Supervision) {
        self.watch.on_message();
        match message {
            FromTask::Hello {
                version: PROTOCOL_VERSION,
            } => {
                supervision.report(Report::Started);
                self.step(Input::Hello, supervision);
            }
            FromTask::Hello { version } => self.give_up(&format!(
                "the task process uses protocol version {version}, its worker {PROTOCOL_VERSION}; \
                 was the program replaced while it ran?"
            )),
            FromTask::Progress {
                bytes_done,
                bytes_total,
                signs,
            } => {
                self.watch.on_progress(bytes_done, bytes_total, signs);
                supervision.send(AttemptEvent::Progressed {
                    bytes_done,
                    bytes_total,
                });
            }
            FromTask::CommitRequest { part } if !part.has_sound_names() => {
                self.fail(TaskError::fatal(
                    "the task wrote outputs with invalid names",
                ));
            }
            FromTask::CommitRequest { part } => {
                self.part = Some(part);
                self.watch.set_waits(true);
                supervision.report(Report::CommitRequested);
            }
            FromTask::Done {
                counters,
                output_digest,
            } => {
                self.outcome = Some(AttemptEnd::Done {
                    counters,
                    part: self.part.take(),
                    output_digest,
                });
            }
            FromTask::InputsLost {
                attempts,
                place,
                reason,
            } => {
                supervision.report(Report::InputsLost {
                    outputs: attempts,
                    place,
                    reason,
                });
            }
            FromTask::Failed(error) => self.outcome = Some(AttemptEnd::Failed(error)),
            FromTask::Checkpointed { bytes } => {
                self.saved_bytes = bytes;
                self.outcome = Some(AttemptEnd::Checkpointed);
            }
            FromTask::Ready { epoch, saves } => {
                self.step(Input::Ready { epoch, saves }, supervision)
            }
            FromTask::Resumed { epoch } => self.step(Input::Resumed { epoch }, supervision),
            FromTask::Restored => self.account(Preempted::Restored, supervision),
            FromTask::RestoreRefused { reason } => {
                reached(Situation::RestoreRefused);
                self.account(Preempted::RestoreRefused(reason), supervision);
            }
            FromTask::StopSignalled => supervision.want_suspend(),
        }
    }

    fn account(&mut self, what: Preempted, supervision: &Supervision) {
        let account = self.suspension.take_account(what, Some(self.process.id()));
        supervision.account(account);
    }

    /// Kills a process that cannot be understood or watched.
    fn give_up(&mut self, reason: &str) {
        self.fail(TaskError::retryable(reason));
    }

    fn fail(&mut self, error: TaskError) {
        self.line.close();
        self.outcome = Some(AttemptEnd::Failed(error));
        self.process.kill();
    }

    /// Ends the supervision. Messages sent before the process ended count, even if a kill was ordered
    /// meanwhile.
    async fn finish(mut self, supervision: &Supervision) -> AttemptEnd {
        // A killed process needs a moment to end; after an error the reaping waits for it.
        let _ = self.process.ended().await;
        while self.receive(supervision) {}
        let moved = self.suspension.take_last_account(self.process.id());
        if let Some(account) = moved
            && self.killed.is_none()
        {
            supervision.account(account);
        }
        let reaped = self.process.reap();
        let stopped = self.preemption.is_stopped();
        self.suspension.end();
        let exceeded = supervision.bounds.as_ref().and_then(Bounds::kernel_kill);
        if self.killed.is_some() {
            match &self.outcome {
                Some(AttemptEnd::Done { .. }) => reached(Situation::DoneWhileKilled),
                Some(AttemptEnd::Checkpointed) => reached(Situation::CheckpointedWhileKilled),
                _ => {}
            }
        }
        match (self.outcome, self.killed, reaped) {
            (Some(done @ AttemptEnd::Done { .. }), ..) => done,
            (Some(AttemptEnd::Checkpointed), ..) => {
                let mut account = self.suspension.take_account(Preempted::Checkpointed, None);
                account.checkpoint_bytes = self.saved_bytes;
                supervision.account(account);
                AttemptEnd::Checkpointed
            }
            (_, Some((since, mut account)), _) => {
                account.micros = whole_micros(since.elapsed());
                supervision.account(account);
                AttemptEnd::Killed
            }
            (Some(AttemptEnd::Failed(error)), ..) => {
                AttemptEnd::Failed(with_bounds(error, exceeded))
            }
            (Some(outcome), ..) => outcome,
            (None, None, Ok(status)) => {
                let death = Death {
                    status,
                    while_stopped: stopped,
                    after_oom_kill: supervision.processes.oom_kills() > self.oom_kills,
                };
                AttemptEnd::Failed(exceeded.unwrap_or_else(|| death.error()))
            }
            (None, None, Err(error)) => AttemptEnd::Failed(TaskError::retryable(format!(
                "cannot reap the task process: {error}"
            ))),
        }
    }
}

/// Returns the situation in which a kill order reaches an attempt.
fn killed_in(stage: Stage) -> Situation {
    match stage {
        Stage::Starting => Situation::KilledStarting,
        Stage::Running => Situation::KilledRunning,
        Stage::Suspending { .. } => Situation::KilledSuspending,
        Stage::Stopping { .. } | Stage::Undoing { .. } => Situation::KilledStopping,
        Stage::Suspended { .. } => Situation::KilledSuspended,
        Stage::Resuming { .. } => Situation::KilledResuming,
        Stage::Checkpointing => Situation::KilledCheckpointing,
    }
}
