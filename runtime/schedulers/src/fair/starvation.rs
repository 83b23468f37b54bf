//! Decides which jobs of a pool starve, and by how many slots: a job below its fair share for too long, or a
//! pool below its minimum share for too long.

use napreduce_engine::{Ratio, Span, Time};

/// When a pool preempts for its jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StarvationPatience {
    /// Time that the pool may be below its minimum share; `None` is unlimited.
    pub min_share_timeout: Option<Span>,
    /// Time that a job may be below the threshold; `None` is unlimited.
    pub fair_share_timeout: Option<Span>,
    /// Fraction of its fair share that a job must hold.
    pub fair_share_threshold: Ratio,
}

/// The usage and demand of a pool of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolNeed {
    pub usage: u64,
    /// Minimum share.
    pub min: u64,
    /// Usage plus pending demand.
    pub demand: u64,
    pub patience: StarvationPatience,
    /// When the pool last held its minimum, or was created.
    pub last_at_min: Time,
}

/// The usage and demand of a job in the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobNeed {
    pub usage: u64,
    /// Fair share.
    pub share: u64,
    /// Usage plus pending demand.
    pub demand: u64,
    /// When the job last held its threshold, or was submitted.
    pub last_at_share: Time,
    /// Earliest next check of a job that starved before.
    pub next_check: Time,
}

impl JobNeed {
    /// Returns the slots that the job wants and does not hold.
    pub(super) fn unmet(&self) -> u64 {
        self.demand.saturating_sub(self.usage)
    }

    /// Returns the usage below which the job starves, rounded up to whole slots.
    fn bound(&self, patience: &StarvationPatience) -> u64 {
        patience
            .fair_share_threshold
            .of_raised(self.share)
            .min(self.demand)
    }

    /// Returns the slots missing to the threshold, once the timeout has passed.
    fn below_share(&self, now: Time, patience: &StarvationPatience) -> u64 {
        let lacks = self.bound(patience).saturating_sub(self.usage);
        let waited = now.since(self.last_at_share);
        if patience
            .fair_share_timeout
            .is_some_and(|timeout| waited >= timeout)
        {
            lacks
        } else {
            0
        }
    }
}

impl PoolNeed {
    /// Returns the slots missing to the minimum share, once the timeout has passed.
    pub(super) fn below_min(&mut self, now: Time) -> u64 {
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

/// Returns by how many slots each job starves. `jobs` must be in fair order: the first job at its threshold
/// ends the search for jobs below theirs. Updates the times at which pool and jobs last held their shares.
pub fn starvation(now: Time, pool: &mut PoolNeed, jobs: &mut [JobNeed]) -> Vec<u64> {
    let mut starving = vec![0; jobs.len()];
    let waits = |job: &JobNeed| job.unmet() > 0 && job.next_check <= now;
    let patience = pool.patience;
    for job in jobs
        .iter_mut()
        .filter(|job| job.usage >= job.bound(&patience))
    {
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
