//! Which job gets a free slot: one whose size is to be measured, else the first in order that can use it.
//!
//! Owns the split between samples and the rest. Does not own which task of the job runs.

use std::collections::BTreeSet;

use napreduce_engine::{Actions, AttemptState, ClusterView, Job, JobId, Offer, Time, serve};

use crate::hfsp::configuration::HfspConfiguration;
use crate::hfsp::lane::Lane;
use crate::hfsp::ranking::Rank;
use crate::serving::Delay;

/// So many jobs may decline a slot until it stays empty for now: offers are to be cheap.
const DECLINES_MAX: usize = 64;

impl Lane {
    /// Gives the offered slot to somebody, or declines it.
    pub fn offer(
        &mut self,
        now: Time,
        view: &ClusterView<'_>,
        offer: Offer,
        configuration: &HfspConfiguration,
        delay: &mut Delay,
        actions: &mut Actions,
    ) {
        if let Some(beneficiary) = offer.reserved_for {
            if !view.job(beneficiary).is_some_and(|job| serve(job, offer, actions)) {
                actions.decline("the job for which it was freed has no use for it");
            }
            return;
        }
        let may_train = self.training_slots < configuration.training_max(self.kind);
        let served = (may_train && self.serve_untried(view, offer, actions))
            || self.serve_in_order(now, view, offer, delay, actions)
            || (!may_train && self.serve_untried(view, offer, actions));
        if !served {
            actions.decline("every job in order waits for another worker, or to be measured");
        }
    }

    /// Starts another task of some sample; of fewer tasks left first.
    fn serve_untried(&self, view: &ClusterView<'_>, offer: Offer, actions: &mut Actions) -> bool {
        let jobs = self.untried.iter().take(DECLINES_MAX).filter_map(|(.., id)| view.job(*id));
        jobs.into_iter().any(|job| serve(job, offer, actions))
    }

    /// The first job in order that has something suspended here, or a task that it wants to run here.
    fn serve_in_order(
        &self,
        now: Time,
        view: &ClusterView<'_>,
        offer: Offer,
        delay: &mut Delay,
        actions: &mut Actions,
    ) -> bool {
        let resumable = self.resumable(view, offer);
        let mut launchable = self.launchable.iter().take(DECLINES_MAX).copied().peekable();
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
            if view.job(turn.job).is_some_and(|job| self.serve_job(now, job, offer, delay, actions)) {
                return true;
            }
        }
    }

    fn serve_job(
        &self,
        now: Time,
        job: &Job,
        offer: Offer,
        delay: &mut Delay,
        actions: &mut Actions,
    ) -> bool {
        let endless = self.members.get(&job.id()).is_none_or(|member| member.is_endless());
        match job.suspended_on(offer.kind, offer.worker) {
            Some(attempt) => actions.resume(attempt),
            None if endless => return false,
            None => return delay.serve(now, job, offer, actions),
        }
        true
    }

    /// The jobs that have something suspended on the offered worker, in order.
    fn resumable(&self, view: &ClusterView<'_>, offer: Offer) -> BTreeSet<Rank> {
        let here =
            if view.has_suspended(offer.kind, offer.worker) { view.worker(offer.worker) } else { None };
        let attempts = here.into_iter().flat_map(|worker| worker.attempts());
        let stopped = attempts.filter(|id| {
            id.task.kind == offer.kind
                && view.attempt(*id).is_some_and(|attempt| attempt.state() == AttemptState::Suspended)
        });
        let jobs: BTreeSet<JobId> = stopped.map(|id| id.task.job).collect();
        jobs.into_iter().filter_map(|id| self.members.get(&id)?.wish.turn).collect()
    }
}
