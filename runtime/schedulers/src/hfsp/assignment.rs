//! Assignment of a free slot: to a job that is still sampling its task times, within the training limit, or
//! else to the first job in order.

use napreduce_engine::{
    Actions, AttemptState, ClusterView, Job, JobId, Offer, SortedSet, Time, serve,
};

use crate::hfsp::configuration::HfspConfiguration;
use crate::hfsp::lane::Lane;
use crate::hfsp::ranking::Rank;
use crate::serving::Delay;

/// Limit on the jobs that may decline one offer, to bound its cost.
const DECLINES_MAX: usize = 64;

/// One offer of a free slot.
pub(super) struct Opportunity<'a, 'b> {
    pub now: Time,
    pub view: &'a ClusterView<'b>,
    pub offer: Offer,
    pub configuration: &'a HfspConfiguration,
    pub delay: &'a mut Delay,
    pub actions: &'a mut Actions,
}

impl Opportunity<'_, '_> {
    fn serve(&mut self, job: &Job) -> bool {
        serve(job, self.offer, self.actions)
    }
}

impl Lane {
    /// Assigns the offered slot, or declines it.
    pub fn assign(&mut self, opportunity: &mut Opportunity<'_, '_>) {
        if let Some(beneficiary) = opportunity.offer.reserved_for {
            if !opportunity
                .view
                .job(beneficiary)
                .is_some_and(|job| opportunity.serve(job))
            {
                opportunity
                    .actions
                    .decline("the job for which the slot was freed cannot use it");
            }
            return;
        }
        let may_train = self.training_slots < opportunity.configuration.training_max(self.kind);
        let served = (may_train && self.serve_sample(opportunity))
            || self.serve_in_order(opportunity)
            || (!may_train && self.serve_sample(opportunity));
        if !served {
            opportunity
                .actions
                .decline("every job waits for another worker or for its size to be measured");
        }
    }

    /// Starts another sample task; jobs with the fewest tasks left go first.
    fn serve_sample(&self, opportunity: &mut Opportunity<'_, '_>) -> bool {
        let view = opportunity.view;
        let jobs = self
            .untried
            .iter()
            .take(DECLINES_MAX)
            .filter_map(|(.., id)| view.job(*id));
        jobs.into_iter().any(|job| opportunity.serve(job))
    }

    /// Serves the first job in order that can resume a task on the worker or accepts it for a launch.
    fn serve_in_order(&self, opportunity: &mut Opportunity<'_, '_>) -> bool {
        let resumable = self.resumable(opportunity.view, opportunity.offer);
        let mut launchable = self
            .launchable
            .iter()
            .take(DECLINES_MAX)
            .copied()
            .peekable();
        let mut resumable = resumable.into_iter().peekable();
        loop {
            let next = match (launchable.peek(), resumable.peek()) {
                (Some(fresh), Some(stopped)) if fresh < stopped => launchable.next(),
                (Some(_), None) => launchable.next(),
                (_, stopped) => {
                    if stopped == launchable.peek() {
                        launchable.next();
                    }
                    resumable.next()
                }
            };
            let Some(turn) = next else { return false };
            if opportunity
                .view
                .job(turn.job)
                .is_some_and(|job| self.serve_job(job, opportunity))
            {
                return true;
            }
        }
    }

    fn serve_job(&self, job: &Job, opportunity: &mut Opportunity<'_, '_>) -> bool {
        let Opportunity {
            now,
            offer,
            delay,
            actions,
            ..
        } = opportunity;
        let endless = self
            .members
            .get(&job.id())
            .is_none_or(|member| member.is_endless());
        match job.suspended_on(offer.kind, offer.worker) {
            Some(attempt) => actions.resume(attempt),
            None if endless => return false,
            None => return delay.serve(*now, job, *offer, actions),
        }
        true
    }

    /// Returns the jobs with suspended tasks on the offered worker, in order.
    fn resumable(&self, view: &ClusterView<'_>, offer: Offer) -> SortedSet<Rank> {
        let here = if view.has_suspended(offer.kind, offer.worker) {
            view.worker(offer.worker)
        } else {
            None
        };
        let attempts = here.into_iter().flat_map(|worker| worker.attempts());
        let stopped = attempts.filter(|id| {
            id.task.kind == offer.kind
                && view
                    .attempt(*id)
                    .is_some_and(|attempt| attempt.state() == AttemptState::Suspended)
        });
        let jobs: SortedSet<JobId> = stopped.map(|id| id.task.job).collect();
        jobs.into_iter()
            .filter_map(|id| self.members.get(&id)?.demand.turn)
            .collect()
    }
}
