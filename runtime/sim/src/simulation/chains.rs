//! Chains: the next job comes when the one before it has ended well.
//!
//! Owns what each job gets of the deadline of its chain, from how long jobs of the same class in chains took.
//! Does not own the division (`napreduce_engine::chain_share`).

use std::collections::BTreeMap;
use std::sync::Arc;

use napreduce_engine::{Span, chain_share};

use super::Simulation;
use crate::job::{Followers, SimulatedJob};
use crate::run::{Ending, JobResult, SimulationError};

/// How many jobs of chains ended well, by class, and how long they took together.
#[derive(Debug, Default)]
pub(super) struct ChainLengths(BTreeMap<Arc<str>, (u64, u64)>);

impl ChainLengths {
    fn of(&self, job: &SimulatedJob) -> Option<Span> {
        self.0.get(&job.class).map(|(jobs, total)| Span(total / (*jobs).max(1)))
    }

    /// Gives a job that is submitted its part of the deadline that it shares.
    pub fn divide(&self, job: &mut SimulatedJob) {
        let Some(followers) = &job.followed_by else { return };
        let later: Vec<Option<Span>> = followers.jobs.iter().map(|later| self.of(later)).collect();
        job.deadline = followers.deadline.map(|left| chain_share(left, self.of(job), &later));
    }
}

impl Simulation {
    /// A job has ended: the next one of its chain comes, or all that is left of it never does.
    pub(super) fn follow(
        &mut self,
        mut ended: SimulatedJob,
        result: &JobResult,
    ) -> Result<(), SimulationError> {
        let followers = ended.followed_by.take();
        if ended.is_chained && result.ending == Ending::Succeeded {
            let (jobs, total) = self.chain_lengths.0.entry(ended.class).or_default();
            (*jobs, *total) = (*jobs + 1, total.saturating_add(result.sojourn().0));
        }
        let Some(Followers { mut jobs, deadline }) = followers.map(|rest| *rest) else { return Ok(()) };
        if result.ending != Ending::Succeeded {
            let never = jobs.iter().map(|job| job.name.to_string());
            self.run.never_submitted.extend(never);
            return Ok(());
        }
        let Some(mut next) = jobs.pop_front() else { return Ok(()) };
        let left = deadline.map(|deadline| Span(deadline.0.saturating_sub(result.sojourn().0)));
        (next.submit, next.deadline, next.is_chained) = (self.now, left, true);
        next.followed_by = (!jobs.is_empty()).then(|| Box::new(Followers { jobs, deadline: left }));
        self.arrive_job(next)
    }
}
