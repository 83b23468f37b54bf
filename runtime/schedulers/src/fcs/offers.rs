//! Assignment of free reduce slots to waiting jobs.

use napreduce_engine::{Actions, ClusterView, Job, Offer, TaskId, TaskKind, TaskState, Time};

use crate::fcs::launch::LaunchChoice;
use crate::fcs::policy::Fcs;

/// Limit on the jobs that may decline one offer, to bound its cost.
const DECLINES_MAX: usize = 64;

impl Fcs {
    /// Assigns the offered slot, or declines it.
    pub(super) fn offer(
        &mut self,
        now: Time,
        view: &ClusterView<'_>,
        offer: Offer,
        actions: &mut Actions,
    ) {
        if let Some(beneficiary) = offer.reserved_for {
            if !view
                .job(beneficiary)
                .is_some_and(|job| self.serve(job, offer, false, actions))
            {
                actions.decline("the job for which the slot was freed cannot use it");
            }
            return;
        }
        let last = self.state.last_counted.get(&offer.worker);
        let counts = last.is_none_or(|last| now >= *last + self.configuration.heartbeat);
        let jobs: Vec<_> = self
            .state
            .jobs
            .waiting
            .iter()
            .take(DECLINES_MAX)
            .map(|place| place.2)
            .collect();
        for id in jobs {
            if view
                .job(id)
                .is_some_and(|job| self.serve(job, offer, counts, actions))
            {
                break;
            }
        }
        if counts {
            self.state.last_counted.insert(offer.worker, now);
        }
        if self.state.declined {
            let again = now + self.configuration.period();
            self.state.offer_at = Some(
                self.state
                    .offer_at
                    .filter(|at| *at > now)
                    .map_or(again, |at| at.min(again)),
            );
            self.state.declined = false;
        }
    }

    /// Assigns the slot to a job, unless the job waits for the workers of its preempted reduces.
    fn serve(&mut self, job: &Job, offer: Offer, counts: bool, actions: &mut Actions) -> bool {
        let kind = TaskKind::Reduce;
        let worker = offer.worker;
        if let Some(attempt) = job.suspended_on(kind, worker) {
            actions.resume(attempt);
            return true;
        }
        let patience = self.configuration.patience(self.state.workers);
        let Some(member) = self.state.jobs.members.get_mut(&job.id()) else {
            return false;
        };
        // Registers a checkpointed reduce that is not waiting: it failed after its restore, or the state
        // comes from an older snapshot.
        if let Some((task, place, _)) = job.checkpointed(kind).next()
            && member.preempted.place_of(task.index).is_none()
        {
            member.preempted.wait(task.index, place);
        }
        let fresh = job.next_fresh(kind, worker);
        while let Some(choice) = member
            .preempted
            .choose(worker, fresh.is_some(), patience, counts)
        {
            let task = match (choice, fresh) {
                (LaunchChoice::Fresh, Some(task)) => task,
                (LaunchChoice::Fresh, None) => return false,
                (LaunchChoice::Return(index) | LaunchChoice::Migrate(index), _) => {
                    let task = TaskId {
                        job: job.id(),
                        kind,
                        index,
                    };
                    if job.task_state(task) != Some(TaskState::Pending) {
                        // The task ended before its preemption.
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
