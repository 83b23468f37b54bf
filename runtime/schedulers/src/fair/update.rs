//! One look at the whole tree of pools: everybody's share, and who starves.
//!
//! Owns the walk down the tree over a plain picture of it, for one kind of slot. Does not own the rules for
//! the children of one pool (`shares`, `starvation`) nor the picture, which the policy draws and reads back.

use std::cmp::Reverse;

use napreduce_engine::{JobId, Ratio, Span, Time};

use crate::fair::order::{ChildStanding, Name, Weight};
use crate::fair::shares::{Claim, UNBOUNDED, shares};
use crate::fair::starvation::{JobNeed, PoolNeed, StarvationPatience, starvation};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobPicture {
    pub job: JobId,
    pub submitted: Time,
    /// Higher goes first in a pool that serves in turn.
    pub priority: i32,
    /// Its part in relation to the other jobs of its pool.
    pub weight: Ratio,
    /// What it has and should have; the update fills in the share.
    pub need: JobNeed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolPicture {
    /// The place of its parent in the picture, which is smaller; the root alone has none.
    pub parent: Option<usize>,
    /// What it may get of its parent's share.
    pub claim: Claim,
    /// Its jobs are served one after the other.
    pub in_turn: bool,
    /// Whether others may take from its jobs.
    pub yields: bool,
    /// When it preempts for its jobs.
    pub patience: StarvationPatience,
    /// When it last had its minimum.
    pub last_at_min: Time,
    pub jobs: Vec<JobPicture>,
    /// What its jobs and those of the pools below hold; filled in.
    pub usage: u64,
    /// What they hold or want; filled in.
    pub demand: u64,
    /// Its share; filled in.
    pub share: u64,
}

/// A job that starves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Starved {
    /// The place of its pool.
    pub pool: usize,
    /// Its place in the pool.
    pub place: usize,
    /// How much it lacks.
    pub amount: u64,
}

/// Gives every pool and job its share of `total`. With `cap_by_demand` nobody's share exceeds what it holds
/// or wants.
pub fn set_shares(total: u64, cap_by_demand: bool, pools: &mut [PoolPicture]) {
    add_up(pools);
    let Some(root) = pools.first_mut() else { return };
    root.share = total;
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); pools.len()];
    for (place, pool) in pools.iter().enumerate() {
        pool.parent.into_iter().for_each(|parent| below[parent].push(place));
    }
    for place in 0..pools.len() {
        let children = &below[place];
        let claims: Vec<Claim> = children
            .iter()
            .map(|&child| active(pools[child].claim, pools[child].demand, cap_by_demand))
            .collect();
        for (&child, share) in children.iter().zip(shares(pools[place].share, &claims)) {
            pools[child].share = share;
        }
        set_job_shares(&mut pools[place], cap_by_demand);
    }
}

fn add_up(pools: &mut [PoolPicture]) {
    for pool in pools.iter_mut() {
        pool.usage = pool.jobs.iter().map(|job| job.need.usage).sum();
        pool.demand = pool.jobs.iter().map(|job| job.need.demand).sum();
    }
    for place in (1..pools.len()).rev() {
        let (usage, demand) = (pools[place].usage, pools[place].demand);
        if let Some(parent) = pools[place].parent {
            pools[parent].usage += usage;
            pools[parent].demand += demand;
        }
    }
}

/// The claim of a child; nothing when it has no job with demand.
fn active(claim: Claim, demand: u64, cap_by_demand: bool) -> Claim {
    if demand == 0 {
        Claim { max: 0, ..claim }
    } else if cap_by_demand {
        Claim { max: claim.max.min(demand), ..claim }
    } else {
        claim
    }
}

fn set_job_shares(pool: &mut PoolPicture, cap_by_demand: bool) {
    if pool.in_turn {
        // One after the other: whoever is earlier gets what it can use.
        pool.jobs.sort_by_key(|job| (Reverse(job.priority), job.submitted, job.job));
        let mut left = pool.share;
        for job in &mut pool.jobs {
            job.need.share = left.min(job.need.demand);
            left -= job.need.share;
        }
        return;
    }
    pool.jobs.sort_by_cached_key(standing);
    let claim = |job: &JobPicture| Claim { min: 0, max: UNBOUNDED, weight: job.weight };
    let claims: Vec<Claim> =
        pool.jobs.iter().map(|job| active(claim(job), job.need.demand, cap_by_demand)).collect();
    for (job, share) in pool.jobs.iter_mut().zip(shares(pool.share, &claims)) {
        job.need.share = share;
    }
}

fn standing(job: &JobPicture) -> ChildStanding {
    ChildStanding {
        usage: job.need.usage,
        min: 0,
        demand: job.need.demand,
        weight: Weight::new(job.weight),
        start: job.submitted,
        name: Name::Job(job.job),
    }
}

/// The jobs that starve, pool after pool, in the order of each pool. After [`set_shares`], which leaves the
/// jobs in that order.
pub fn starved(now: Time, pools: &mut [PoolPicture]) -> Vec<Starved> {
    let mut found = Vec::new();
    for (place, pool) in pools.iter_mut().enumerate().filter(|(_, pool)| !pool.jobs.is_empty()) {
        let mut need = PoolNeed {
            usage: pool.usage,
            min: pool.claim.min,
            demand: pool.demand,
            patience: pool.patience,
            last_at_min: pool.last_at_min,
        };
        let mut jobs: Vec<JobNeed> = pool.jobs.iter().map(|job| job.need).collect();
        let amounts = starvation(now, &mut need, &mut jobs);
        pool.last_at_min = need.last_at_min;
        pool.jobs.iter_mut().zip(jobs).for_each(|(job, need)| job.need = need);
        let starving = amounts.into_iter().enumerate().filter(|(_, amount)| *amount > 0);
        found.extend(starving.map(|(job, amount)| Starved { pool: place, place: job, amount }));
    }
    found
}

/// Whether more than this part of the cluster is in use; `used` and `total` for each resource.
pub fn is_utilised(gate: Ratio, resources: &[(u64, u64)]) -> bool {
    let known = resources.iter().filter(|(_, total)| *total > 0);
    known.map(|&(used, total)| Ratio::new(i128::from(used), i128::from(total))).any(|used| used > gate)
}

/// How long a job that was found starved is not looked at again: until its victims are gone and it could have
/// got their slots, and a while longer.
pub fn recheck_after(kill_wait: Span, heartbeat: Span, recheck_delay: Span) -> Span {
    Span(heartbeat.0.saturating_mul(4)) + kill_wait + recheck_delay
}
