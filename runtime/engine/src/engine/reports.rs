//! Reports of workers about attempts: their effect in each state, and commit grants.

use crate::effect::{Order, Record};
use crate::engine::Rules;
use crate::engine::endings::Failure;
use crate::event::{FailureClass, Report};
use crate::fault::FaultPlace;
use crate::ids::{AttemptId, TaskKind, WorkerId};
use crate::states::{AttemptInput, AttemptState};

impl Rules {
    pub(super) fn reported(&mut self, worker: WorkerId, id: AttemptId, report: &Report) {
        if *report == Report::OutputMoved {
            // The attempt has already ended.
            return self.output_moved(worker, id);
        }
        // The only place where reports about obsolete attempts are dropped.
        if self
            .cluster
            .attempts
            .get(&id)
            .is_none_or(|attempt| attempt.worker != worker)
        {
            self.cluster.tally.stale_reports += 1;
            return;
        }
        match report {
            Report::Started => self.runs(id, AttemptInput::Started),
            Report::Resumed => self.runs(id, AttemptInput::Resumed),
            Report::Suspended => self.suspended(id, true),
            Report::SuspendedAtWork => self.suspended(id, false),
            Report::SuspendRefused { reason } => self.suspend_refused(id, reason),
            Report::Progressed {
                bytes_done,
                bytes_total,
            } => self.progressed(id, *bytes_done, *bytes_total),
            Report::InputsLost {
                outputs,
                place,
                reason,
            } => self.inputs_lost(id, outputs, *place, reason),
            Report::CommitRequested => self.commit_requested(id),
            Report::Done {
                output_bytes,
                output_digest,
            } => self.done(id, *output_bytes, *output_digest),
            Report::Failed {
                class,
                place,
                reason,
                lost_outputs,
                disk_need,
            } => {
                let reason = reason.clone();
                let lost_outputs = lost_outputs.clone();
                let disk_need = *disk_need;
                let failure = Failure {
                    class: *class,
                    place: *place,
                    reason,
                    lost_outputs,
                    disk_need,
                };
                self.attempt_exits(id, AttemptInput::Failed, Some(failure));
            }
            Report::Killed => {
                let failure = Failure::retryable("it was killed without an order");
                self.attempt_exits(id, AttemptInput::Killed, Some(failure));
            }
            Report::OutputMoved => {}
            Report::Checkpointed => {
                let failure = Failure::retryable("it reported a checkpoint before it had started");
                self.attempt_exits(id, AttemptInput::Checkpointed, Some(failure));
            }
        }
    }

    /// Handles the start or the resume of a process.
    fn runs(&mut self, id: AttemptId, input: AttemptInput) {
        let Some((_, AttemptState::Running)) = self.step(id, input) else {
            return;
        };
        let now = self.cluster.now;
        self.cluster.attempt_mut(id).start_clock(now);
        self.cluster.measure_start(id, input);
        if input == AttemptInput::Resumed {
            self.record(Record::Resumed(id));
        }
        // A commit requested just before the stop comes first: it frees the slot fastest.
        self.grant_commit(id);
        self.save_in_slot(id);
        self.advance_request(id);
    }

    fn progressed(&mut self, id: AttemptId, bytes_done: u64, bytes_total: u64) {
        let now = self.cluster.now;
        if self.step(id, AttemptInput::Progressed).is_some() {
            let attempt = self.cluster.attempt_mut(id);
            attempt.progressed(now, bytes_done, bytes_total);
        }
    }

    fn commit_requested(&mut self, id: AttemptId) {
        if self.step(id, AttemptInput::CommitRequested).is_none() {
            return;
        }
        let job = self.cluster.job(id.task.job);
        let why = if !job.commits(id.task.kind) {
            "its output goes to reduces"
        } else if id.task.kind == TaskKind::Reduce && !job.has_had_every_map() {
            "some of its maps never finished"
        } else {
            self.cluster.attempt_mut(id).wants_commit = true;
            return self.grant_commit(id);
        };
        self.cluster.tally.illegal_reports += 1;
        self.warn(format!("{id} asked to commit, but {why}; ignored"));
    }

    /// Grants the commit to an attempt that requested it and runs, if no other attempt of its task has the
    /// grant.
    ///
    /// There is no grant while it is being suspended, so no grant is held across a suspend. There may be one
    /// during a checkpoint: finishing is even better.
    pub(super) fn grant_commit(&mut self, id: AttemptId) {
        let attempt = self.cluster.attempt_mut(id);
        let able = matches!(
            attempt.state,
            AttemptState::Running | AttemptState::Checkpointing
        );
        if !able || !attempt.wants_commit {
            return;
        }
        let worker = attempt.worker;
        let task = self.cluster.task_mut(id.task);
        if task.committer.is_some() {
            return;
        }
        task.committer = Some(id.number);
        self.record(Record::CommitGranted(id));
        self.send(worker, Order::Commit { attempt: id });
    }

    fn done(&mut self, id: AttemptId, output_bytes: u64, output_digest: Option<u64>) {
        let job = self.cluster.job(id.task.job);
        if job.commits(id.task.kind) && !job.is_committing(id) {
            let failure = Failure::retryable("it finished without a commit grant");
            self.attempt_exits(id, AttemptInput::Failed, Some(failure));
        } else {
            let attempt = self.cluster.attempt_mut(id);
            attempt.output_bytes = output_bytes;
            attempt.output_digest = output_digest;
            self.attempt_exits(id, AttemptInput::Done, None);
        }
    }
}

impl Failure {
    fn retryable(reason: &str) -> Failure {
        let class = FailureClass::Retryable;
        let place = FaultPlace::Host;
        Failure {
            class,
            place,
            reason: reason.to_owned(),
            lost_outputs: Vec::new(),
            disk_need: None,
        }
    }
}
