//! Jobs that people change while they are there: held, or with another priority or queue.
//!
//! Owns what becomes of the job in every index, and how the policy learns of it. Does not own whether a
//! change means anything (the policy).

use crate::cluster::ClusterView;
use crate::effect::Record;
use crate::engine::Engine;
use crate::ids::JobId;
use crate::job::JobChange;
use crate::preemption::Primitive;
use crate::refusal::OperatorRefusal;
use crate::scheduler::QueueShare;
use crate::states::{AttemptState, JobState};

impl Engine {
    /// Whether a job can have another priority or queue.
    ///
    /// # Errors
    /// The reason why not.
    pub fn can_change_job(&self, id: JobId, change: &JobChange) -> Result<(), OperatorRefusal> {
        let job = self.cluster.jobs.get(&id).ok_or_else(|| self.no_such_job(id))?;
        if job.state != JobState::Active {
            return Err(OperatorRefusal::JobEnding);
        }
        if change.is_in(&job.spec) {
            return Err(OperatorRefusal::Unchanged(change.in_words()));
        }
        self.scheduler.can_change(change).map_err(OperatorRefusal::Policy)?;
        let mut spec = job.spec.clone();
        change.apply_to(&mut spec);
        self.scheduler.admits(&spec).map_err(OperatorRefusal::Policy)
    }

    /// The queues that the policy tells apart, if it does.
    pub fn queues(&self) -> Option<Vec<QueueShare>> {
        self.scheduler.queues(&self.view())
    }

    pub(super) fn job_hold_requested(&mut self, id: JobId, reason: &str) {
        if let Err(why) = self.can_hold_job(id) {
            return self.refuse(format!("{id} cannot be held: {why}"));
        }
        self.hold_job(id, reason, true);
    }

    /// Has a job pause; what runs of it is let finish, or suspended.
    pub(super) fn hold_job(&mut self, id: JobId, reason: &str, lets_finish: bool) {
        let job = self.cluster.job_mut(id);
        (job.held, job.lets_finish) = (Some(reason.to_owned()), lets_finish);
        let live: Vec<_> = job.live.iter().copied().collect();
        self.record(Record::JobHeld { job: id, lets_finish, reason: reason.to_owned() });
        self.withdraw_requests_for(id);
        for attempt in live {
            match self.cluster.attempts[&attempt].state {
                // What waits to be resumed waits for the release.
                AttemptState::Suspended => {
                    self.cluster.attempt_mut(attempt).waits_since = None;
                    self.cluster.relist(attempt);
                }
                AttemptState::Suspending => {}
                // What cannot be suspended is let finish.
                _ if !lets_finish && self.can_preempt(attempt, Primitive::Suspend).is_ok() => {
                    let reason = format!("{id} is suspended: {reason}");
                    self.replace_request(attempt, Primitive::Suspend, &reason);
                }
                _ => {}
            }
        }
        self.cluster.refresh(id);
    }

    /// The job leaves every order that it stands in by what it asked for, and comes back as what it
    /// asks for now.
    pub(super) fn job_change_requested(&mut self, id: JobId, change: &JobChange, reason: &str) {
        if let Err(why) = self.can_change_job(id, change) {
            return self.refuse(format!("{id} cannot have {}: {why}", change.in_words()));
        }
        // What the policy does not know yet would be told of a job that is not there.
        self.tell_changed();
        let Some(mut job) = self.cluster.take_out(id) else { return };
        self.scheduler.job_changed(self.cluster.now, id, &ClusterView::new(&self.cluster));
        change.apply_to(&mut job.spec);
        self.cluster.jobs.insert(id, job);
        self.record(Record::JobChanged { job: id, change: change.clone(), reason: reason.to_owned() });
        self.cluster.refresh(id);
    }
}
