//! Free reduce slots: Algorithm 2 over the jobs that wait.
//!
//! Owns what counts as an opportunity. Does not own the counters.

use napreduce_engine::{Actions, ClusterView, Job, Offer, TaskId, TaskKind, TaskState, Time};

use crate::fcs::launch::LaunchChoice;
use crate::fcs::policy::Fcs;

/// So many jobs may decline a slot until it stays empty for now: offers are to be cheap.
const DECLINES_MAX: usize = 64;

impl Fcs {
    /// Gives the offered slot to somebody, or declines it.
    pub(super) fn offer(&mut self, now: Time, view: &ClusterView<'_>, offer: Offer, actions: &mut Actions) {
        if let Some(beneficiary) = offer.reserved_for {
            if !view.job(beneficiary).is_some_and(|job| self.serve(job, offer, false, actions)) {
                actions.decline("the job for which it was freed has no use for it");
            }
            return;
        }
        let last = self.state.last_counted.get(&offer.worker);
        let counts = last.is_none_or(|last| now >= *last + self.configuration.heartbeat);
        let jobs: Vec<_> = self.state.jobs.waiting.iter().take(DECLINES_MAX).map(|place| place.2).collect();
        for id in jobs {
            if view.job(id).is_some_and(|job| self.serve(job, offer, counts, actions)) {
                break;
            }
        }
        if counts {
            self.state.last_counted.insert(offer.worker, now);
        }
        if self.state.declined {
            let again = now + self.configuration.period();
            self.state.offer_at =
                Some(self.state.offer_at.filter(|at| *at > now).map_or(again, |at| at.min(again)));
            self.state.declined = false;
        }
    }

    /// Gives the slot to a job if it takes it; a preempted reduce of it may rather wait for its worker.
    fn serve(&mut self, job: &Job, offer: Offer, counts: bool, actions: &mut Actions) -> bool {
        let (kind, worker) = (TaskKind::Reduce, offer.worker);
        if let Some(attempt) = job.suspended_on(kind, worker) {
            actions.resume(attempt);
            return true;
        }
        let patience = self.configuration.patience(self.state.workers);
        let Some(member) = self.state.jobs.members.get_mut(&job.id()) else { return false };
        // A reduce that failed after it went on waits again, as does every preempted one after a restore from
        // before it.
        if let Some((task, place, _)) = job.checkpointed(kind).next()
            && member.preempted.place_of(task.index).is_none()
        {
            member.preempted.wait(task.index, place);
        }
        let fresh = job.next_fresh(kind, worker);
        while let Some(answer) = member.preempted.answer(worker, fresh.is_some(), patience, counts) {
            let task = match (answer, fresh) {
                (LaunchChoice::Fresh, Some(task)) => task,
                (LaunchChoice::Fresh, None) => return false,
                (LaunchChoice::Return(index) | LaunchChoice::Migrate(index), _) => {
                    let task = TaskId { job: job.id(), kind, index };
                    if job.task_state(task) != Some(TaskState::Pending) {
                        // Its slot was asked for, but it ended first.
                        member.preempted.stop_waiting(index);
                        continue;
                    }
                    if job.eligible_count(kind) == 0 || job.avoids(task, worker) {
                        return false;
                    }
                    task
                }
            };
            member.preempted.stop_waiting(task.index);
            actions.launch(task, worker, job.start_of(task));
            return true;
        }
        self.state.declined |= !member.preempted.is_empty();
        false
    }
}
