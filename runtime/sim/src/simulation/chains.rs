//! Chains of jobs: each job is submitted when its predecessor succeeds, with its part of the chain's
//! deadline. The parts are estimated from earlier jobs of the same class in chains.

use std::collections::BTreeMap;
use std::sync::Arc;

use napreduce_engine::{Span, chain_share};

use super::Simulation;
use crate::job::{Followers, SimulatedJob};
use crate::run::{Ending, JobResult, SimulationError};

/// The lengths of successful jobs in chains, by class.
#[derive(Debug, Default)]
pub(super) struct ChainLengths {
    of_class: BTreeMap<Arc<str>, Lengths>,
}

/// The number and total duration of jobs.
#[derive(Debug, Default)]
struct Lengths {
    jobs: u64,
    total: Span,
}

impl ChainLengths {
    /// Returns the mean length of earlier jobs of the same class.
    fn mean_for(&self, job: &SimulatedJob) -> Option<Span> {
        let lengths = self.of_class.get(&job.class)?;
        Some(Span(lengths.total.0 / lengths.jobs.max(1)))
    }

    /// Adds the length of a successful job.
    fn add(&mut self, class: Arc<str>, length: Span) {
        let lengths = self.of_class.entry(class).or_default();
        lengths.jobs += 1;
        lengths.total = Span(lengths.total.0.saturating_add(length.0));
    }

    /// Sets the deadline of a job with followers: its part of the chain's deadline.
    pub fn set_deadline(&self, job: &mut SimulatedJob) {
        let Some(followers) = &job.followed_by else {
            return;
        };
        let own = self.mean_for(job);
        let mut later: Vec<Option<Span>> = Vec::with_capacity(followers.jobs.len());
        for follower in &followers.jobs {
            later.push(self.mean_for(follower));
        }
        job.deadline = followers
            .deadline
            .map(|deadline| chain_share(deadline, own, &later));
    }
}

/// Returns the first of the followers, followed by the others, in what is left of the chain's deadline after
/// a job of length `ended`.
fn next_of_chain(followers: Followers, ended: Span) -> Option<SimulatedJob> {
    let mut jobs = followers.jobs;
    let mut next = jobs.pop_front()?;
    let deadline = followers
        .deadline
        .map(|deadline| Span(deadline.0.saturating_sub(ended.0)));
    next.deadline = deadline;
    next.is_chained = true;
    next.followed_by = if jobs.is_empty() {
        None
    } else {
        Some(Box::new(Followers { jobs, deadline }))
    };
    Some(next)
}

impl Simulation {
    /// Submits the next job of a chain after one ended, or drops the rest of the chain.
    pub(super) fn submit_follower(
        &mut self,
        mut ended: SimulatedJob,
        result: &JobResult,
    ) -> Result<(), SimulationError> {
        let has_succeeded = result.ending == Ending::Succeeded;
        let followers = ended.followed_by.take();
        if ended.is_chained && has_succeeded {
            self.chain_lengths.add(ended.class, result.sojourn());
        }
        let Some(followers) = followers else {
            return Ok(());
        };
        if !has_succeeded {
            let names = followers.jobs.iter().map(|job| job.name.to_string());
            self.run.never_submitted.extend(names);
            return Ok(());
        }
        let Some(mut next) = next_of_chain(*followers, result.sojourn()) else {
            return Ok(());
        };
        next.submit = self.clock.now();
        self.arrive_job(next)
    }
}
