//! Operator requests: suspending, checkpointing, killing and resuming attempts, and pausing jobs.
//!
//! A suspension by an operator is a hold that lasts until it is released; no policy can launch or resume held
//! attempts or jobs. A request is carried out exactly as asked or rejected with a warning that gives the
//! reason; a driver can check first with `can_preempt` and similar functions. A hold outlives its attempt: if
//! that is drained, lost or fails, its task is held, with the work that could be saved.

use crate::cluster::{Attempt, Cluster, Job};
use crate::effect::Record;
use crate::engine::{Engine, Rules};
use crate::ids::{AttemptId, JobId, TaskKind};
use crate::pause::{Hold, Pause, PauseKind};
use crate::preemption::{PreemptRequest, Primitive, RequestState, Requester};
use crate::refusal::OperatorRefusal;
use crate::settings::PreemptionSettings;
use crate::states::{AttemptState, JobState};

impl Engine {
    /// Checks whether an operator can preempt an attempt with this primitive.
    ///
    /// # Errors
    /// Returns the reason why not.
    pub fn can_preempt(&self, id: AttemptId, primitive: Primitive) -> Result<(), OperatorRefusal> {
        let settings = &self.rules.settings.preemption;
        self.rules.cluster.can_preempt(id, primitive, settings)
    }

    /// Checks whether an operator can resume an attempt.
    ///
    /// # Errors
    /// Returns the reason why not.
    pub fn can_resume(&self, id: AttemptId) -> Result<(), OperatorRefusal> {
        self.rules.cluster.can_resume(id)
    }

    /// Checks whether a job can be paused; a hold can become a suspend, but not the reverse.
    ///
    /// # Errors
    /// Returns the reason why not.
    pub fn can_pause_job(&self, id: JobId, kind: PauseKind) -> Result<(), OperatorRefusal> {
        self.rules.cluster.can_pause_job(id, kind)
    }

    /// Checks whether an operator can resume a job: the job or some of its tasks are suspended.
    ///
    /// # Errors
    /// Returns the reason why not.
    pub fn can_resume_job(&self, id: JobId) -> Result<(), OperatorRefusal> {
        self.rules.cluster.can_resume_job(id)
    }

    /// Checks whether a job is held, so that it can be released.
    ///
    /// # Errors
    /// Returns the reason why not.
    pub fn can_release_job(&self, id: JobId) -> Result<(), OperatorRefusal> {
        self.rules
            .cluster
            .can_resume_job(id)
            .map_err(|why| match why {
                OperatorRefusal::NotSuspended => OperatorRefusal::NotHeld,
                other => other,
            })?;
        match &self.rules.cluster.job(id).pause {
            Some(Pause {
                kind: PauseKind::Hold,
                ..
            }) => Ok(()),
            _ => Err(OperatorRefusal::JobNotHeldButSuspended(id)),
        }
    }
}

impl Rules {
    pub(super) fn attempt_preempt_requested(
        &mut self,
        id: AttemptId,
        primitive: Primitive,
        reason: &str,
    ) {
        let settings = &self.settings.preemption;
        if let Err(why) = self.cluster.can_preempt(id, primitive, settings) {
            return self.refuse(format!("{id} cannot be preempted by {primitive}: {why}"));
        }
        let suspended = self.cluster.attempt_mut(id).state == AttemptState::Suspended;
        match primitive {
            Primitive::Suspend => self.hold(id, reason),
            Primitive::Checkpoint if suspended => {
                self.give_up(id, primitive, Requester::Operator, reason.to_owned());
            }
            Primitive::Checkpoint => {
                self.cluster.release_hold(id);
                self.replace_request(id, primitive, Requester::Operator, reason.to_owned());
            }
            Primitive::Kill | Primitive::Wait => self.attempt_kill_requested(id, reason),
        }
    }

    /// Kills an attempt immediately, even while it commits: its task is retried anyway, and only the part of
    /// the attempt that reported `Done` counts.
    pub(super) fn attempt_kill_requested(&mut self, id: AttemptId, reason: &str) {
        let settings = &self.settings.preemption;
        match self.cluster.can_preempt(id, Primitive::Kill, settings) {
            Ok(()) => {
                self.cluster.release_hold(id);
                self.kill(id, reason.to_owned());
            }
            Err(why) => self.refuse(format!("{id} cannot be killed: {why}")),
        }
    }

    /// Suspends an attempt until it is released.
    fn hold(&mut self, id: AttemptId, reason: &str) {
        self.cluster.task_mut(id.task).held = Some(reason.to_owned());
        let attempt = self.cluster.attempt_mut(id);
        attempt.hold = Some(Hold::Suspend);
        let state = attempt.state;
        self.record(Record::AttemptHeld {
            attempt: id,
            reason: reason.to_owned(),
        });
        match state {
            AttemptState::Suspended => {
                let attempt = self.cluster.attempt_mut(id);
                attempt.explain_suspension(Requester::Operator, reason.to_owned());
                attempt.waits_since = None;
                attempt.saving = attempt
                    .saving
                    .take()
                    .filter(|saving| saving.by != Requester::Operator);
                self.cluster.relist(id);
                self.cluster.refresh(id.task.job);
            }
            AttemptState::Suspending => {}
            _ => self.replace_request(
                id,
                Primitive::Suspend,
                Requester::Operator,
                reason.to_owned(),
            ),
        }
    }

    /// Opens a request that does not come from the policy. It replaces an open request and keeps its promise.
    pub(super) fn replace_request(
        &mut self,
        id: AttemptId,
        primitive: Primitive,
        by: Requester,
        reason: String,
    ) {
        let before = self.cluster.remove_request(id, &self.settings.preemption);
        self.cluster.tally.requests_cancelled += u64::from(before.is_some());
        let beneficiary = before.and_then(|before| before.beneficiary);
        let request = PreemptRequest::new(id, primitive, by, reason, self.cluster.now);
        self.open_request(PreemptRequest {
            beneficiary,
            ..request
        });
    }

    pub(super) fn attempt_resume_requested(&mut self, id: AttemptId, reason: &str) {
        if let Err(why) = self.cluster.can_resume(id) {
            return self.refuse(format!("{id} cannot be resumed: {why}"));
        }
        let job = self.cluster.job_mut(id.task.job);
        if job.is_held_without_attempt(id.task) {
            job.release(id.task);
            self.record(Record::AttemptReleased {
                attempt: id,
                reason: reason.to_owned(),
            });
            return self.cluster.refresh(id.task.job);
        }
        self.cluster.release_hold(id);
        let attempt = self.cluster.attempt_mut(id);
        let stops = matches!(
            attempt.state,
            AttemptState::Suspended | AttemptState::Suspending
        );
        attempt.hold = stops.then_some(Hold::Resume);
        let suspended = attempt.state == AttemptState::Suspended;
        self.record(Record::AttemptReleased {
            attempt: id,
            reason: reason.to_owned(),
        });
        if suspended {
            self.cluster.relist(id);
            self.cluster.refresh(id.task.job);
        } else {
            self.withdraw_unordered_suspend(id);
        }
    }

    /// Withdraws a suspend that has not been ordered yet, because an operator resumes the attempt.
    fn withdraw_unordered_suspend(&mut self, id: AttemptId) {
        let unordered = self.cluster.requests.get(&id).is_some_and(|request| {
            request.by == Requester::Operator
                && request.state == RequestState::Created
                && request.primitive == Primitive::Suspend
        });
        if unordered {
            self.close_unordered(id, "an operator resumed it");
        }
    }

    pub(super) fn job_resume_requested(&mut self, id: JobId, reason: &str) {
        if let Err(why) = self.cluster.can_resume_job(id) {
            return self.refuse(format!("{id} cannot be resumed: {why}"));
        }
        if self.cluster.job(id).pause.is_none() {
            for attempt in self.cluster.held_tasks(id) {
                self.attempt_resume_requested(attempt, reason);
            }
            return;
        }
        let job = self.cluster.job_mut(id);
        job.pause = None;
        let live: Vec<AttemptId> = job.live.iter().copied().collect();
        self.record(Record::JobReleased {
            job: id,
            reason: reason.to_owned(),
        });
        for attempt in live {
            self.cluster.relist(attempt);
            if !self.cluster.attempts[&attempt].is_held() {
                self.withdraw_unordered_suspend(attempt);
            }
        }
        self.cluster.refresh(id);
    }

    /// Resumes attempts that operators released, and those that must work before they can be saved, as far as there
    /// are slots, before any slot is offered.
    pub(super) fn resume_recalled(&mut self) {
        if self.cluster.suspended.recalled().is_empty() {
            return;
        }
        let recalled: Vec<AttemptId> = self.cluster.suspended.recalled().iter().copied().collect();
        for id in recalled {
            // Without a slot the attempt stays suspended and is checked again after the next event.
            if self.cluster.has_next_slot(id) {
                self.resume_in_slot(id);
            }
        }
    }

    /// Rejects a request that is not possible now.
    pub(super) fn refuse(&mut self, why: String) {
        self.cluster.tally.illegal_events += 1;
        self.warn(format!("{why}; ignored"));
    }
}

impl Cluster {
    /// Checks whether an operator can preempt an attempt with this primitive.
    ///
    /// # Errors
    /// Returns the reason why not.
    pub(super) fn can_preempt(
        &self,
        id: AttemptId,
        primitive: Primitive,
        settings: &PreemptionSettings,
    ) -> Result<(), OperatorRefusal> {
        let attempt = self.attempts.get(&id).ok_or(OperatorRefusal::NotRunning)?;
        let kind = id.task.kind;
        let job = self.job(id.task.job);
        let can = settings.can_do(job, kind);
        let worker = &self.workers[&attempt.worker];
        let stopped = attempt.state == AttemptState::Suspended;
        let full = worker.why_full(settings.suspended_max);
        match (primitive, attempt.state) {
            (Primitive::Kill, _) => Ok(()),
            (Primitive::Wait, _) => Err(OperatorRefusal::NothingToDo),
            (_, AttemptState::Killing) => Err(OperatorRefusal::BeingKilled),
            (_, AttemptState::Checkpointing) => Err(OperatorRefusal::BeingCheckpointed),
            (Primitive::Checkpoint, _) if attempt.saving.is_some() => {
                Err(OperatorRefusal::BeingCheckpointed)
            }
            (Primitive::Checkpoint, AttemptState::Suspending) => {
                Err(OperatorRefusal::BeingSuspended)
            }
            (Primitive::Checkpoint, _) if !can.checkpoint && settings.of(kind).checkpoint => {
                Err(OperatorRefusal::StateNotSaved(kind))
            }
            (Primitive::Checkpoint, _) if !can.checkpoint => {
                Err(OperatorRefusal::NoCheckpoints(kind))
            }
            (Primitive::Suspend, _) if attempt.is_held() => {
                Err(OperatorRefusal::SuspendedByOperator)
            }
            (Primitive::Suspend, _) if !can.suspend => Err(OperatorRefusal::NoSuspends(kind)),
            (Primitive::Suspend, AttemptState::Suspending | AttemptState::Suspended) => Ok(()),
            (Primitive::Suspend, _) if full.is_some() => {
                Err(OperatorRefusal::WorkerFull(full.unwrap_or_default()))
            }
            _ if !stopped && job.is_committing(id) => Err(OperatorRefusal::Committing),
            _ => Ok(()),
        }
    }

    /// Checks whether an operator can resume an attempt.
    ///
    /// # Errors
    /// Returns the reason why not.
    pub(super) fn can_resume(&self, id: AttemptId) -> Result<(), OperatorRefusal> {
        let job = self
            .jobs
            .get(&id.task.job)
            .ok_or(OperatorRefusal::NotRunning)?;
        let attempt = self.attempts.get(&id);
        if attempt.is_none() && !job.is_held_without_attempt(id.task) {
            return Err(OperatorRefusal::NotRunning);
        }
        if job.pause.is_some() {
            return Err(OperatorRefusal::ResumeItsJob(job.id));
        }
        match attempt {
            Some(attempt) => attempt.can_resume(),
            None => Ok(()),
        }
    }

    /// Checks whether a job can be paused; a hold can become a suspend, but not the reverse.
    ///
    /// # Errors
    /// Returns the reason why not.
    pub(super) fn can_pause_job(&self, id: JobId, kind: PauseKind) -> Result<(), OperatorRefusal> {
        let job = self.jobs.get(&id).ok_or_else(|| self.no_such_job(id))?;
        job.can_pause(kind)
    }

    /// Checks whether an operator can resume a job: the job or some of its tasks are suspended.
    ///
    /// # Errors
    /// Returns the reason why not.
    pub(super) fn can_resume_job(&self, id: JobId) -> Result<(), OperatorRefusal> {
        let job = self.jobs.get(&id).ok_or_else(|| self.no_such_job(id))?;
        match (job.state, &job.pause) {
            (JobState::Active, Some(_)) => Ok(()),
            (JobState::Active, None) if !self.held_tasks(id).is_empty() => Ok(()),
            (JobState::Active, None) => Err(OperatorRefusal::NotSuspended),
            _ => Err(OperatorRefusal::JobEnding),
        }
    }

    pub(super) fn no_such_job(&self, id: JobId) -> OperatorRefusal {
        if self.ended.contains(id.0) {
            OperatorRefusal::JobEnded
        } else {
            OperatorRefusal::NoSuchJob
        }
    }

    /// Releases an attempt, and its task unless another attempt of it is held.
    pub(super) fn release_hold(&mut self, id: AttemptId) {
        let attempt = self.attempt_mut(id);
        if !attempt.is_held() {
            return;
        }
        attempt.hold = None;
        if !self.holds_another(id) {
            self.job_mut(id.task.job).release(id.task);
        }
    }

    /// Holds the task of an ended attempt that an operator held, unless the task is done or has another live
    /// attempt.
    pub(super) fn keep_hold(&mut self, gone: &Attempt) {
        let task = gone.id.task;
        if !gone.is_held() || self.holds_another(gone.id) {
            return;
        }
        if let Some(job) = self.jobs.get_mut(&task.job)
            && !job.phases[task.kind].held.contains(&task.index)
        {
            job.release(task);
        }
    }

    /// Returns whether an operator holds another live attempt of the same task.
    fn holds_another(&self, id: AttemptId) -> bool {
        let Some(job) = self.jobs.get(&id.task.job) else {
            return false;
        };
        let mut others = job.attempts_of(id.task).filter(|other| *other != id);
        others.any(|other| self.attempts[&other].is_held())
    }

    /// Returns the last attempts of a job's tasks that operators suspended.
    fn held_tasks(&self, id: JobId) -> Vec<AttemptId> {
        let job = self.job(id);
        let live = job
            .live
            .iter()
            .copied()
            .filter(|attempt| self.attempts[attempt].is_held());
        let gone = TaskKind::ALL
            .into_iter()
            .flat_map(|kind| job.held_tasks(kind));
        live.chain(gone.filter_map(|task| job.held_attempt(task)))
            .collect()
    }
}

impl Attempt {
    /// Checks whether an operator can resume it, while its job is not paused.
    fn can_resume(&self) -> Result<(), OperatorRefusal> {
        match self.state {
            AttemptState::Suspended | AttemptState::Suspending if self.is_recalled() => {
                Err(OperatorRefusal::BeingResumed)
            }
            AttemptState::Suspended | AttemptState::Suspending => Ok(()),
            _ if self.is_held() => Ok(()),
            AttemptState::Killing => Err(OperatorRefusal::BeingKilled),
            AttemptState::Checkpointing => Err(OperatorRefusal::ExitsAfterCheckpoint),
            _ => Err(OperatorRefusal::NotSuspended),
        }
    }
}

impl Job {
    /// Checks whether it can be paused; a hold can become a suspend, but not the reverse.
    fn can_pause(&self, kind: PauseKind) -> Result<(), OperatorRefusal> {
        if self.state != JobState::Active {
            return Err(OperatorRefusal::JobEnding);
        }
        let Some(before) = &self.pause else {
            return Ok(());
        };
        match (before.kind, kind) {
            // Storage that comes back must not release a job that an operator holds.
            (PauseKind::Hold, PauseKind::Hold | PauseKind::OutputUnreachable) => {
                Err(OperatorRefusal::JobHeld)
            }
            (PauseKind::Hold, _) => Ok(()),
            (_, PauseKind::Hold) => Err(OperatorRefusal::JobSuspendedInsteadOfHeld),
            (_, PauseKind::Suspend | PauseKind::OutputUnreachable) => {
                Err(OperatorRefusal::JobSuspended)
            }
        }
    }
}
