//! Computes shares and starvation for one slot kind over a snapshot of the tree of pools.

use std::cmp::Reverse;

use napreduce_engine::{JobId, Ratio, Span, Time, sort_by_key};

use crate::fair::order::{ChildStanding, Name, Weight};
use crate::fair::shares::{Claim, UNBOUNDED, shares};
use crate::fair::starvation::{JobNeed, PoolNeed, StarvationPatience, starvation};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobSnapshot {
    pub job: JobId,
    pub submitted: Time,
    /// Higher goes first in a FIFO pool.
    pub priority: i32,
    /// Weight relative to the other jobs of its pool.
    pub weight: Ratio,
    /// Usage, demand and times; [`set_shares`] fills in the share.
    pub need: JobNeed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolSnapshot {
    /// Index of the parent, which is smaller than its own; `None` for the root.
    pub parent: Option<usize>,
    /// Its claim on the parent's share.
    pub claim: Claim,
    /// Serves its jobs in FIFO order.
    pub fifo: bool,
    /// Whether other pools may preempt its jobs.
    pub preemptable: bool,
    pub patience: StarvationPatience,
    /// When it last held its minimum share.
    pub last_at_min: Time,
    pub jobs: Vec<JobSnapshot>,
    /// Usage of its jobs and of the pools below; filled in.
    pub usage: u64,
    /// Usage plus pending demand, likewise; filled in.
    pub demand: u64,
    /// Filled in.
    pub share: u64,
}

/// A job that starves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Starved {
    /// Index of its pool.
    pub pool: usize,
    /// Its index in the pool.
    pub place: usize,
    /// Missing slots, after those of earlier entries for the same job.
    pub amount: u64,
    /// Slots of earlier entries for the same job.
    pub before: u64,
    /// The pool that holds this pool and is below its minimum, if the slots are for that minimum.
    pub for_minimum_of: Option<usize>,
}

/// Computes the share of every pool and job in `total`. With `cap_by_demand` no share exceeds the demand.
pub fn set_shares(total: u64, cap_by_demand: bool, pools: &mut [PoolSnapshot]) {
    add_up(pools);
    let Some(root) = pools.first_mut() else {
        return;
    };
    root.share = total;
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); pools.len()];
    for (place, pool) in pools.iter().enumerate() {
        if let Some(parent) = pool.parent {
            below[parent].push(place);
        }
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

fn add_up(pools: &mut [PoolSnapshot]) {
    for pool in pools.iter_mut() {
        pool.usage = pool.jobs.iter().map(|job| job.need.usage).sum();
        pool.demand = pool.jobs.iter().map(|job| job.need.demand).sum();
    }
    for place in (1..pools.len()).rev() {
        let usage = pools[place].usage;
        let demand = pools[place].demand;
        if let Some(parent) = pools[place].parent {
            pools[parent].usage += usage;
            pools[parent].demand += demand;
        }
    }
}

/// Returns the claim of a child, which is empty without demand.
fn active(claim: Claim, demand: u64, cap_by_demand: bool) -> Claim {
    if demand == 0 {
        Claim { max: 0, ..claim }
    } else if cap_by_demand {
        Claim {
            max: claim.max.min(demand),
            ..claim
        }
    } else {
        claim
    }
}

fn set_job_shares(pool: &mut PoolSnapshot, cap_by_demand: bool) {
    if pool.fifo {
        // In FIFO order, each job gets its demand as far as the share reaches.
        sort_by_key(&mut pool.jobs, |job| {
            (Reverse(job.priority), job.submitted, job.job)
        });
        let mut left = pool.share;
        for job in &mut pool.jobs {
            job.need.share = left.min(job.need.demand);
            left -= job.need.share;
        }
        return;
    }
    sort_by_key(&mut pool.jobs, standing);
    let claim = |job: &JobSnapshot| Claim {
        min: 0,
        max: UNBOUNDED,
        weight: job.weight,
    };
    let claims: Vec<Claim> = pool
        .jobs
        .iter()
        .map(|job| active(claim(job), job.need.demand, cap_by_demand))
        .collect();
    for (job, share) in pool.jobs.iter_mut().zip(shares(pool.share, &claims)) {
        job.need.share = share;
    }
}

fn standing(job: &JobSnapshot) -> ChildStanding {
    ChildStanding {
        usage: job.need.usage,
        min: 0,
        demand: job.need.demand,
        weight: Weight::new(job.weight),
        start: job.submitted,
        name: Name::Job(job.job),
    }
}

/// Returns the starved jobs, pool by pool in fair order. Requires the order that [`set_shares`] leaves.
pub fn starved(now: Time, pools: &mut [PoolSnapshot]) -> Vec<Starved> {
    let mut found = Vec::new();
    for (place, pool) in pools
        .iter_mut()
        .enumerate()
        .filter(|(_, pool)| !pool.jobs.is_empty())
    {
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
        for (job, need) in pool.jobs.iter_mut().zip(jobs) {
            job.need = need;
        }
        let starving = amounts
            .into_iter()
            .enumerate()
            .filter(|(_, amount)| *amount > 0);
        found.extend(starving.map(|(job, amount)| Starved {
            pool: place,
            place: job,
            amount,
            before: 0,
            for_minimum_of: None,
        }));
    }
    add_starved_below_parents(now, pools, &mut found);
    found
}

/// Adds the jobs that receive slots for the minimum of a pool that holds pools: those of the pools furthest
/// below their share first.
fn add_starved_below_parents(now: Time, pools: &mut [PoolSnapshot], found: &mut Vec<Starved>) {
    for place in (1..pools.len()).rev() {
        let holds_pools = pools.iter().any(|pool| pool.parent == Some(place));
        if !holds_pools || pools[place].claim.min == 0 {
            continue;
        }
        let mut need = PoolNeed {
            usage: pools[place].usage,
            min: pools[place].claim.min,
            demand: pools[place].demand,
            patience: pools[place].patience,
            last_at_min: pools[place].last_at_min,
        };
        let missing = need.below_min(now);
        pools[place].last_at_min = need.last_at_min;
        let mut below: Vec<usize> = (place..pools.len())
            .filter(|&pool| is_in(pools, pool, place))
            .collect();
        let explained: u64 = found
            .iter()
            .filter(|one| below.contains(&one.pool))
            .map(|one| one.amount)
            .sum();
        let mut left = missing.saturating_sub(explained);
        sort_by_key(&mut below, |&pool| {
            Reverse(pools[pool].share.saturating_sub(pools[pool].usage))
        });
        for pool in below {
            for (job, known) in pools[pool].jobs.iter().enumerate() {
                let earlier = found
                    .iter()
                    .filter(|one| (one.pool, one.place) == (pool, job));
                let before: u64 = earlier.map(|one| one.amount).sum();
                let amount = known.need.unmet().saturating_sub(before).min(left);
                if amount > 0 && known.need.next_check <= now {
                    left -= amount;
                    let for_minimum_of = Some(place);
                    found.push(Starved {
                        pool,
                        place: job,
                        amount,
                        before,
                        for_minimum_of,
                    });
                }
            }
        }
    }
}

/// Returns whether a pool is `of` or in it.
fn is_in(pools: &[PoolSnapshot], pool: usize, of: usize) -> bool {
    std::iter::successors(Some(pool), |&pool| pools[pool].parent).any(|pool| pool == of)
}

/// Whether more than the fraction `gate` of any resource is in use; `resources` are pairs of used and total.
pub fn is_utilised(gate: Ratio, resources: &[(u64, u64)]) -> bool {
    let known = resources.iter().filter(|(_, total)| *total > 0);
    known
        .map(|&(used, total)| Ratio::new(i128::from(used), i128::from(total)))
        .any(|used| used > gate)
}

/// Returns the pause before a starved job is checked again: time for its victims to end, for its tasks to
/// start, and `recheck_delay`.
pub fn recheck_after(kill_wait: Span, heartbeat: Span, recheck_delay: Span) -> Span {
    Span(heartbeat.0.saturating_mul(4)) + kill_wait + recheck_delay
}
