//! Which jobs of a pool starve, and by how much.
//!
//! Owns the two rules (below a job's share for too long, below the pool's minimum for too long) and the
//! division of the pool's hunger among its jobs. Amounts are of one kind. Does not own when it is asked, nor
//! what is done about it.

use napreduce_engine::{Ratio, Span, Time};

/// When a pool preempts on behalf of its jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StarvationPatience {
    /// How long the pool may be below its minimum; for ever, without.
    pub min_share_timeout: Option<Span>,
    /// How long a job may be below its part of its share; for ever, without.
    pub fair_share_timeout: Option<Span>,
    /// Which part of its share a job must have.
    pub fair_share_threshold: Ratio,
}

/// A pool that holds jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolNeed {
    /// What its jobs hold.
    pub usage: u64,
    /// What it should hold at least.
    pub min: u64,
    /// What its jobs hold or want.
    pub demand: u64,
    /// When it preempts.
    pub patience: StarvationPatience,
    /// When it last had its minimum, or came into being.
    pub last_at_min: Time,
}

/// A job of that pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobNeed {
    /// What it holds.
    pub usage: u64,
    /// Its fair share.
    pub share: u64,
    /// What it holds or wants.
    pub demand: u64,
    /// When it last had its part of its share, or was submitted.
    pub last_at_share: Time,
    /// It was found starved before, and is not looked at until then.
    pub next_check: Time,
}

impl JobNeed {
    fn unmet(&self) -> u64 {
        self.demand.saturating_sub(self.usage)
    }

    /// Below that it starves. Raised to a whole amount: less than half of one slot is no slot at all.
    fn bound(&self, patience: &StarvationPatience) -> u64 {
        patience.fair_share_threshold.of_raised(self.share).min(self.demand)
    }

    /// What it lacks to its part of its share, if it has lacked something for long enough.
    fn below_share(&self, now: Time, patience: &StarvationPatience) -> u64 {
        let lacks = self.bound(patience).saturating_sub(self.usage);
        let waited = now.since(self.last_at_share);
        if patience.fair_share_timeout.is_some_and(|timeout| waited >= timeout) { lacks } else { 0 }
    }
}

impl PoolNeed {
    /// What it lacks to its minimum, if it has lacked something for long enough.
    fn below_min(&mut self, now: Time) -> u64 {
        let bound = self.min.min(self.demand);
        if self.usage >= bound {
            self.last_at_min = now;
            return 0;
        }
        let patience = self.patience.min_share_timeout;
        let long = patience.is_some_and(|timeout| now.since(self.last_at_min) >= timeout);
        if long { bound - self.usage } else { 0 }
    }
}

/// By how much each job starves, in their order, which is the fair one; nothing for those that do not. After
/// the first that has its part of its share no other starves for its own. Remembers who has now what it
/// should.
pub fn starvation(now: Time, pool: &mut PoolNeed, jobs: &mut [JobNeed]) -> Vec<u64> {
    let mut starving = vec![0; jobs.len()];
    let waits = |job: &JobNeed| job.unmet() > 0 && job.next_check <= now;
    let patience = pool.patience;
    for job in jobs.iter_mut().filter(|job| job.usage >= job.bound(&patience)) {
        job.last_at_share = now;
    }
    for (job, starving) in jobs.iter().zip(&mut starving).filter(|(job, _)| waits(job)) {
        *starving = job.below_share(now, &patience);
        if *starving == 0 {
            break;
        }
    }
    let explained: u64 = starving.iter().sum();
    let mut left = pool.below_min(now).saturating_sub(explained);
    for (job, starving) in jobs.iter().zip(&mut starving).filter(|(job, _)| waits(job)) {
        let more = job.unmet().saturating_sub(*starving).min(left);
        *starving += more;
        left -= more;
    }
    starving
}
