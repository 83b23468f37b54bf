//! Jobs from submission to their end.

use crate::cluster::{Explanation, Job};
use crate::effect::{Effect, Record};
use crate::engine::{Engine, Rules};
use crate::ids::{AttemptId, JobId, TaskId};
use crate::job::{JobOutcome, JobPart, JobSpec};
use crate::refusal::{PolicyRefusal, SubmissionRefusal};
use crate::states::{JobInput, JobState};
use crate::time::Time;

impl Engine {
    pub(super) fn job_submitted(&mut self, id: JobId, spec: &JobSpec) {
        if self.rules.cluster.jobs.contains_key(&id) || self.rules.cluster.ended.contains(id.0) {
            self.rules.cluster.tally.illegal_events += 1;
            self.rules.warn(format!(
                "{id} was already submitted; use a new job number; ignored"
            ));
            return;
        }
        self.rules.record(Record::JobAccepted(id));
        let part = self.rules.cluster.parts.remove(&id).unwrap_or_default();
        if let Err(why) = self.check_submission(spec, part) {
            self.rules.job_over(
                id,
                JobOutcome::Failed {
                    reason: format!("{id} cannot run: {why}"),
                },
            );
            return;
        }
        let mut job = Job::new(id, spec.clone(), self.rules.cluster.now);
        job.part = part;
        job.learn_racks(&self.rules.cluster.racks);
        let nothing_to_do = job.is_complete();
        self.rules.cluster.jobs.insert(id, job);
        self.rules.cluster.refresh(id);
        if nothing_to_do {
            self.rules
                .decide(id, JobInput::Succeeded, JobOutcome::Succeeded);
        }
    }

    fn check_submission(&self, spec: &JobSpec, part: JobPart) -> Result<(), SubmissionRefusal> {
        spec.check()?;
        // A master is admitted without a check; the check applies to its job when that is submitted.
        if part != JobPart::Master {
            self.scheduler.admits(spec)?;
            self.can_meet(self.rules.cluster.now, spec)?;
        }
        Ok(())
    }

    /// Checks whether the policy would admit a job if it were submitted now.
    ///
    /// # Errors
    /// Reports the deadline that could not be met.
    pub fn can_meet(&self, now: Time, spec: &JobSpec) -> Result<(), PolicyRefusal> {
        self.scheduler.can_meet(now, spec, &self.view())
    }

    /// Returns the limit on running jobs that a job waits for, as a sentence.
    pub fn why_limited(&self, job: JobId) -> Option<String> {
        self.scheduler.why_limited(job)
    }

    /// Explains why a task waits, where its attempts run and what they wait for, or which attempt completed
    /// it. Jobs that come first are those of the policy's order.
    pub fn explain(&self, task: TaskId) -> Explanation {
        let view = self.view();
        view.explain_in_order(task, &|kind| self.scheduler.order(kind, &view))
    }

    /// Explains the progress of a job and why its tasks wait: see [`Engine::explain`].
    pub fn explain_job(&self, job: JobId) -> Explanation {
        let view = self.view();
        view.explain_job_in_order(job, &|kind| self.scheduler.order(kind, &view))
    }

    /// Returns the policy's remarks about a job, for people.
    pub fn remarks(&self, now: Time, job: JobId) -> Vec<String> {
        let view = self.view();
        view.job(job)
            .map_or_else(Vec::new, |job| self.scheduler.remarks(now, job, &view))
    }
}

impl Rules {
    pub(super) fn job_kill_requested(&mut self, id: JobId, reason: &str) {
        let outcome = JobOutcome::Killed {
            reason: reason.to_owned(),
        };
        if self.cluster.jobs.contains_key(&id) {
            self.replace_success(id, &outcome);
            self.decide(id, JobInput::KillRequested, outcome);
        } else if !self.cluster.ended.contains(id.0) {
            self.cluster.tally.illegal_events += 1;
            self.warn(format!("{id} cannot be killed: no such job; ignored"));
        }
    }

    /// Gives a job that has succeeded another outcome while it waits for the end of its last attempts: its output is not
    /// committed before.
    fn replace_success(&mut self, id: JobId, outcome: &JobOutcome) {
        let job = self.cluster.job_mut(id);
        if job.outcome != Some(JobOutcome::Succeeded) {
            return;
        }
        job.outcome = Some(outcome.clone());
        self.record(Record::JobDecided(id, outcome.clone()));
        self.cluster.refresh(id);
    }

    /// Decides the outcome of a job: kills its live attempts, or ends it if there are none. Only the first
    /// decision counts, unless an operator kills the job: one report may make two tasks fail for good.
    pub(super) fn decide(&mut self, id: JobId, input: JobInput, outcome: JobOutcome) {
        let Some(job) = self.cluster.jobs.get_mut(&id) else {
            return;
        };
        if job.state != JobState::Active {
            return;
        }
        job.state = job.state.on(input).expect("an active job can be decided");
        job.outcome = Some(outcome.clone());
        let live: Vec<AttemptId> = job.live.iter().copied().collect();
        self.record(Record::JobDecided(id, outcome));
        self.withdraw_requests_for(id, &format!("{id} is over"));
        self.cluster.forget_failures_of(id);
        for attempt in live {
            self.order_kill(attempt);
        }
        self.cluster.refresh(id);
        self.end_if_drained(id);
    }

    /// Ends a stopping job that has no attempts left.
    pub(super) fn end_if_drained(&mut self, id: JobId) {
        let Some(job) = self.cluster.jobs.get_mut(&id) else {
            return;
        };
        if job.state != JobState::Stopping || !job.live.is_empty() {
            return;
        }
        job.state = job
            .state
            .on(JobInput::Drained)
            .expect("a stopping job can end");
        let outcome = job
            .outcome
            .take()
            .expect("the outcome was decided with the step to stopping");
        self.cluster.touch(id);
        let ended = self.cluster.jobs.remove(&id);
        if let Some(job) = ended.filter(|job| outcome == JobOutcome::Succeeded && !job.is_master())
        {
            self.cluster.lengths.note(&job, self.cluster.now);
        }
        self.cluster.forget_lost_workers();
        self.job_over(id, outcome);
    }

    fn job_over(&mut self, id: JobId, outcome: JobOutcome) {
        self.cluster.ended.insert(id.0);
        self.record(Record::JobEnded(id, outcome.clone()));
        self.effects.push(Effect::JobEnded { job: id, outcome });
    }
}
