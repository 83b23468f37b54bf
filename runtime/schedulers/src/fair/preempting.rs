//! An update: what the view shows as plain pictures, and what follows from them as requests.
//!
//! Owns the drawing and the reading back, and that nothing is taken that would not help: nothing of a job for
//! itself, nothing of a pool for its own minimum, nothing of a pool that would be below its own minimum then,
//! and nothing for a pool that may not hold more. Does not own the rules (`update`, `starvation`, `victims`).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use napreduce_engine::{
    Actions, Attempt, AttemptId, AttemptState, ClusterView, Job, JobId, JobState, Preempt, TaskKind, Time,
    WorkerId,
};

use crate::fair::configuration::PoolOrder;
use crate::fair::policy::Fair;
use crate::fair::shares::Claim;
use crate::fair::starvation::JobNeed;
use crate::fair::update::{
    JobPicture, PoolPicture, Starved, is_utilised, recheck_after, set_shares, starved,
};
use crate::fair::victims::{Container, Holder, Host, Search};

/// What runs where, in the shape in which victims are looked for.
struct Places {
    workers: Vec<WorkerId>,
    /// The attempts of each worker, in the order of its containers.
    attempts: Vec<Vec<AttemptId>>,
    search: Search,
    /// What each pool would hold if all requests were satisfied, and what it should hold at least.
    pools: Vec<PoolLevel>,
    /// The job and the pool of each holder.
    holders: Vec<(JobId, usize)>,
}

/// What a pool would hold if all requests were satisfied.
#[derive(Debug, Clone, Copy)]
struct PoolLevel {
    parent: Option<usize>,
    holds: u64,
    min: u64,
    max: u64,
}

/// Who a slot is taken for.
#[derive(Clone, Copy)]
struct Claimant<'a> {
    job: &'a Job,
    pool: usize,
    /// It is for the minimum of the pool: another job of the pool cannot give it.
    for_pool: bool,
}

impl Fair {
    /// Looks at everybody's share, and takes slots for those who starve.
    pub(super) fn preempt(&mut self, now: Time, view: &ClusterView<'_>, actions: &mut Actions) {
        let used = |kind| (u64::from(view.used(kind)), u64::from(view.slots(kind)));
        let utilised = is_utilised(self.configuration.utilization_gate, &TaskKind::ALL.map(used));
        for &kind in actions.kinds() {
            let mut pools = self.picture(kind, view.slots(kind).into());
            set_shares(view.slots(kind).into(), self.configuration.cap_by_demand, &mut pools);
            let found = starved(now, &mut pools);
            self.remember(kind, &pools);
            if utilised && !found.is_empty() {
                self.make_room(now, kind, view, &pools, &found, actions);
            }
        }
    }

    /// The tree, with the jobs that hold or want something of a kind. Nobody's minimum is more than there is.
    fn picture(&self, kind: TaskKind, slots: u64) -> Vec<PoolPicture> {
        let claim = |claim: Claim| Claim { min: claim.min.min(slots), ..claim };
        let pools = self.tree.pools.iter().map(|pool| PoolPicture {
            parent: pool.parent,
            claim: claim(pool.claim(kind)),
            in_turn: pool.order == PoolOrder::Fifo,
            yields: pool.yields,
            patience: pool.patience,
            last_at_min: pool.last_at_min[kind].max(self.waiting_since),
            jobs: pool.jobs.iter().filter_map(|job| self.job_picture(*job, kind)).collect(),
            usage: 0,
            demand: 0,
            share: 0,
        });
        pools.collect()
    }

    fn job_picture(&self, job: JobId, kind: TaskKind) -> Option<JobPicture> {
        let entry = self.tree.jobs.get(&job)?;
        let (held, look) = (entry.kinds[kind].demand.held, entry.looks[kind]);
        if held.demand == 0 {
            return None;
        }
        let need = JobNeed {
            usage: held.usage,
            share: 0,
            demand: held.demand,
            last_at_share: look.last_at_share.max(self.waiting_since),
            next_check: look.next_check,
        };
        let (submitted, priority) = (entry.submitted, entry.priority);
        Some(JobPicture { job, submitted, priority, weight: self.tree.weights.of(entry, kind), need })
    }

    fn remember(&mut self, kind: TaskKind, pools: &[PoolPicture]) {
        for (pool, picture) in self.tree.pools.iter_mut().zip(pools) {
            pool.last_at_min[kind] = picture.last_at_min;
        }
        for job in pools.iter().flat_map(|pool| &pool.jobs) {
            if let Some(entry) = self.tree.jobs.get_mut(&job.job) {
                entry.looks[kind].last_at_share = job.need.last_at_share;
            }
        }
    }

    /// Asks for as many slots as the starved jobs lack and victims can be found for.
    fn make_room(
        &mut self,
        now: Time,
        kind: TaskKind,
        view: &ClusterView<'_>,
        pools: &[PoolPicture],
        found: &[Starved],
        actions: &mut Actions,
    ) {
        let configuration = &self.configuration;
        let delay =
            recheck_after(configuration.kill_wait, configuration.heartbeat, configuration.recheck_delay);
        let (primitive, grace) = (configuration.primitive, Some(configuration.kill_wait));
        let mut places = Places::draw(kind, view, pools);
        for one in found {
            let picture = &pools[one.pool].jobs[one.place];
            if let Some(entry) = self.tree.jobs.get_mut(&picture.job) {
                entry.looks[kind].next_check = now + delay;
            }
            let claimant = view.job(picture.job).filter(|job| job.state() == JobState::Active);
            let Some(claimant) = claimant else { continue };
            let promised = u64::from(claimant.promised(kind));
            let JobNeed { usage, share, demand, .. } = picture.need;
            for taken in promised..one.amount {
                let for_pool = usage + taken >= share;
                let claimant = Claimant { job: claimant, pool: one.pool, for_pool };
                let Some(victims) = places.make_room(claimant, kind) else { break };
                for attempt in victims {
                    let (job, beneficiary) = (picture.job, Some(picture.job));
                    let reason = format!(
                        "{job} starves: it holds {usage} of {demand} {kind} slots, its share is {share}"
                    );
                    actions.preempt(Preempt { attempt, primitive, grace, reason, beneficiary });
                }
            }
        }
    }
}

impl Places {
    fn draw(kind: TaskKind, view: &ClusterView<'_>, pools: &[PoolPicture]) -> Places {
        let mut holder_of: BTreeMap<JobId, usize> = BTreeMap::new();
        let (mut holders, mut of) = (Vec::new(), Vec::new());
        let mut levels: Vec<PoolLevel> = pools.iter().map(PoolLevel::of).collect();
        let jobs =
            pools.iter().enumerate().flat_map(|(place, pool)| pool.jobs.iter().map(move |job| (place, job)));
        for (pool, job) in jobs {
            let known = view.job(job.job);
            let marked = known.map_or(0, |job| job.requested(kind));
            let usage = job.need.usage.saturating_sub(marked.into());
            holder_of.insert(job.job, holders.len());
            holders.push(Holder { usage, share: job.need.share, yields: pools[pool].yields });
            of.push((job.job, pool));
            levels[pool].holds += usage + u64::from(known.map_or(0, |job| job.promised(kind)));
        }
        for pool in (1..levels.len()).rev() {
            if let Some(parent) = levels[pool].parent {
                levels[parent].holds += levels[pool].holds;
            }
        }
        let (mut workers, mut attempts, mut hosts) = (Vec::new(), Vec::new(), Vec::new());
        for (id, worker) in view.workers().filter(|(_, worker)| worker.takes_attempts()) {
            let live = worker.attempts().filter(|attempt| attempt.task.kind == kind);
            let mut here: Vec<&Attempt> = live
                .filter_map(|attempt| view.attempt(attempt))
                .filter(|attempt| may_go(attempt, view.now()) && view.request(attempt.id()).is_none())
                .filter(|attempt| holder_of.contains_key(&attempt.id().task.job))
                .collect();
            // The youngest first: they lose least.
            here.sort_by_key(|attempt| Reverse((attempt.launched(), attempt.id())));
            let container = |attempt: &&Attempt| Container {
                holder: holder_of[&attempt.id().task.job],
                size: 1,
                master: false,
            };
            let free = worker.free(kind).saturating_sub(worker.reserved(kind)).into();
            hosts.push(Host { free, containers: here.iter().map(container).collect() });
            attempts.push(here.iter().map(|attempt| attempt.id()).collect());
            workers.push(id);
        }
        Places { workers, attempts, search: Search::new(hosts, holders), pools: levels, holders: of }
    }

    /// Who must go so that a job gets a slot that it can use; nobody, when one is free.
    fn make_room(&mut self, claimant: Claimant<'_>, kind: TaskKind) -> Option<Vec<AttemptId>> {
        let full = |pool: usize| self.pools[pool].holds >= self.pools[pool].max;
        if above(&self.pools, claimant.pool).any(full) {
            return None;
        }
        let Places { workers, attempts, search, pools, holders } = self;
        let may_give = |holder: usize| {
            let (job, pool) = holders[holder];
            let level = pools[pool];
            let same = pool == claimant.pool;
            job != claimant.job.id() && if same { !claimant.for_pool } else { level.holds > level.min }
        };
        let usable = |host: usize| claimant.job.wants_on(kind, workers[host]);
        let room = search.make_room_of(1, usable, may_give)?;
        let victims: Vec<AttemptId> = room.taken.iter().map(|place| attempts[room.host][*place]).collect();
        for victim in &victims {
            let giver = holders.iter().find(|(job, _)| *job == victim.task.job).map(|(_, pool)| *pool);
            move_one(pools, giver, claimant.pool);
        }
        Some(victims)
    }
}

impl PoolLevel {
    /// Of a pool of which it is not known yet what its jobs would hold.
    fn of(pool: &PoolPicture) -> PoolLevel {
        let PoolPicture { parent, claim, demand, .. } = *pool;
        PoolLevel { parent, holds: 0, min: claim.min.min(demand), max: claim.max }
    }
}

/// A pool and those above it.
fn above(pools: &[PoolLevel], pool: usize) -> impl Iterator<Item = usize> + '_ {
    std::iter::successors(Some(pool), |pool| pools[*pool].parent)
}

/// One slot goes from a pool to another one.
fn move_one(pools: &mut [PoolLevel], from: Option<usize>, to: usize) {
    let from: Vec<usize> = from.into_iter().flat_map(|from| above(pools, from)).collect();
    let to: Vec<usize> = above(pools, to).collect();
    from.into_iter().for_each(|pool| pools[pool].holds = pools[pool].holds.saturating_sub(1));
    to.into_iter().for_each(|pool| pools[pool].holds += 1);
}

/// Whether an attempt runs, so that its slot can be taken.
fn may_go(attempt: &Attempt, now: Time) -> bool {
    attempt.holds_slot() && attempt.state() != AttemptState::Killing && !attempt.is_spared(now)
}
