//! Chains of jobs: each job is submitted when its predecessor succeeds, with its part of the chain's
//! deadline. The parts are estimated from earlier jobs of the same class in chains.

use std::collections::BTreeMap;
use std::sync::Arc;

use napreduce_engine::{Span, chain_share};

use super::Simulation;
use crate::job::{Followers, SimulatedJob};
use crate::run::{Ending, JobResult, SimulationError};

/// Number and total duration of successful jobs in chains, by class.
#[derive(Debug, Default)]
pub(super) struct ChainLengths(BTreeMap<Arc<str>, (u64, u64)>);

impl ChainLengths {
    fn of(&self, job: &SimulatedJob) -> Option<Span> {
        self.0
            .get(&job.class)
            .map(|(jobs, total)| Span(total / (*jobs).max(1)))
    }

    /// Assigns a job its part of the chain's deadline.
    pub fn divide(&self, job: &mut SimulatedJob) {
        let Some(followers) = &job.followed_by else {
            return;
        };
        let later: Vec<Option<Span>> = followers.jobs.iter().map(|later| self.of(later)).collect();
        job.deadline = followers
            .deadline
            .map(|left| chain_share(left, self.of(job), &later));
    }
}

impl Simulation {
    /// Submits the next job of a chain after one ended, or drops the rest of the chain.
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
        let Some(Followers { mut jobs, deadline }) = followers.map(|rest| *rest) else {
            return Ok(());
        };
        if result.ending != Ending::Succeeded {
            let never = jobs.iter().map(|job| job.name.to_string());
            self.run.never_submitted.extend(never);
            return Ok(());
        }
        let Some(mut next) = jobs.pop_front() else {
            return Ok(());
        };
        let left = deadline.map(|deadline| Span(deadline.0.saturating_sub(result.sojourn().0)));
        (next.submit, next.deadline, next.is_chained) = (self.clock.now(), left, true);
        next.followed_by = (!jobs.is_empty()).then(|| {
            Box::new(Followers {
                jobs,
                deadline: left,
            })
        });
        self.arrive_job(next)
    }
}
