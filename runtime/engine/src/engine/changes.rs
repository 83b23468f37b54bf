//! Changes to running jobs: holds, and new priorities or queues. It updates every index and notifies the
//! policy, which decides whether a change is valid.

use crate::cluster::ClusterView;
use crate::effect::Record;
use crate::engine::{Engine, Rules};
use crate::ids::JobId;
use crate::job::JobChange;
use crate::pause::{Pause, PauseKind};
use crate::preemption::{Primitive, Requester};
use crate::refusal::OperatorRefusal;
use crate::scheduler::QueueShare;
use crate::states::{AttemptState, JobState};

impl Engine {
    /// Checks whether the priority or queue of a job can change.
    ///
    /// # Errors
    /// Returns the reason why not.
    pub fn can_change_job(&self, id: JobId, change: &JobChange) -> Result<(), OperatorRefusal> {
        let job = self
            .rules
            .cluster
            .jobs
            .get(&id)
            .ok_or_else(|| self.rules.cluster.no_such_job(id))?;
        if job.state != JobState::Active {
            return Err(OperatorRefusal::JobEnding);
        }
        if change.is_in(&job.spec) {
            return Err(OperatorRefusal::Unchanged(change.in_words()));
        }
        self.scheduler.can_change(change)?;
        let mut spec = job.spec.clone();
        change.apply_to(&mut spec);
        Ok(self.scheduler.admits(&spec)?)
    }

    /// Returns the policy's queues, if it has any.
    pub fn queues(&self) -> Option<Vec<QueueShare>> {
        self.scheduler.queues(&self.view())
    }

    /// Removes the job from every index ordered by its specification, and inserts it again with the new
    /// values.
    pub(super) fn job_change_requested(&mut self, id: JobId, change: &JobChange, reason: &str) {
        if let Err(why) = self.can_change_job(id, change) {
            return self
                .rules
                .refuse(format!("{id} cannot have {}: {why}", change.in_words()));
        }
        // Notify the policy first of pending changes, which would otherwise refer to a job that is absent.
        self.notify_policy();
        let Some(mut job) = self.rules.cluster.take_out(id) else {
            return;
        };
        self.scheduler.job_changed(
            self.rules.cluster.now,
            id,
            &ClusterView::new(&self.rules.cluster),
        );
        change.apply_to(&mut job.spec);
        self.rules.cluster.jobs.insert(id, job);
        self.rules.record(Record::JobChanged {
            job: id,
            change: change.clone(),
            reason: reason.to_owned(),
        });
        self.rules.cluster.refresh(id);
    }
}

impl Rules {
    /// Pauses a job; its running attempts may finish or are suspended.
    pub(super) fn job_pause_requested(&mut self, id: JobId, pause: &Pause) {
        if let Err(why) = self.cluster.can_pause_job(id, pause.kind) {
            let how = if pause.kind == PauseKind::Hold {
                "held"
            } else {
                "suspended"
            };
            return self.refuse(format!("{id} cannot be {how}: {why}"));
        }
        let lets_finish = pause.kind == PauseKind::Hold;
        let reason = &pause.reason;
        let job = self.cluster.job_mut(id);
        job.pause = Some(pause.clone());
        let live: Vec<_> = job.live.iter().copied().collect();
        self.record(Record::JobHeld {
            job: id,
            lets_finish,
            reason: reason.clone(),
        });
        self.withdraw_requests_for(id, &format!("{id} is paused"));
        for attempt in live {
            match self.cluster.attempts[&attempt].state {
                // Suspended attempts wait for the release of the job.
                AttemptState::Suspended => {
                    self.cluster.attempt_mut(attempt).waits_since = None;
                    self.cluster.relist(attempt);
                }
                AttemptState::Suspending => {}
                _ if lets_finish => {}
                _ => {
                    let settings = &self.settings.preemption;
                    let primitive = Primitive::Suspend;
                    if self
                        .cluster
                        .can_preempt(attempt, primitive, settings)
                        .is_err()
                    {
                        // It cannot be suspended, so it may finish.
                        continue;
                    }
                    let reason = format!("{id} is suspended: {reason}");
                    self.replace_request(attempt, primitive, Requester::Operator, reason);
                }
            }
        }
        self.cluster.refresh(id);
    }
}
