//! Preemption for starved jobs: takes a snapshot of the tree, computes shares and starvation, and requests
//! preemption of the victims.
//!
//! A preemption is requested only if it helps: never within one job, never within a pool for the pool's own
//! minimum, never below the minimum of the victim's pool, and never for a pool at its maximum.

use std::cell::RefCell;
use std::cmp::Reverse;

use napreduce_engine::{
    Actions, Attempt, AttemptId, AttemptState, Claims, ClusterView, Job, JobId, JobState, Offer,
    Preempt, SortedMap, TaskKind, Time, WorkerId, sort_by_key,
};

use crate::fair::configuration::PoolOrder;
use crate::fair::policy::Fair;
use crate::fair::shares::Claim;
use crate::fair::starvation::JobNeed;
use crate::fair::update::{
    JobSnapshot, PoolSnapshot, Starved, is_utilised, recheck_after, set_shares, starved,
};
use crate::fair::victims::{Container, Holder, Host, Search};
use crate::serving::Delay;

/// The running attempts, in the form that the victim search takes.
struct Candidates<'a> {
    claims: Claims<'a>,
    workers: Vec<WorkerId>,
    /// Attempts by worker, in the order of the host's containers.
    attempts: Vec<Vec<AttemptId>>,
    search: Search,
    /// The level of each pool once all requests are satisfied.
    pools: Vec<PoolLevel>,
    /// Job and pool of each holder.
    holders: Vec<(JobId, usize)>,
}

/// The usage and bounds of a pool once all requests are satisfied.
#[derive(Debug, Clone, Copy)]
struct PoolLevel {
    parent: Option<usize>,
    holds: u64,
    min: u64,
    max: u64,
}

/// The job for which a slot is preempted.
#[derive(Clone, Copy)]
struct Claimant<'a> {
    job: &'a Job,
    pool: usize,
    /// The slot satisfies the minimum of this pool, so a job in it cannot provide it.
    for_minimum_of: Option<usize>,
}

/// A preemption round for slots of one kind.
struct Round<'a> {
    now: Time,
    kind: TaskKind,
    view: &'a ClusterView<'a>,
    pools: &'a [PoolSnapshot],
    starved: &'a [Starved],
}

impl Fair {
    /// Updates all shares and preempts tasks for starved jobs.
    pub(super) fn preempt(&mut self, now: Time, view: &ClusterView<'_>, actions: &mut Actions) {
        let used = |kind| (u64::from(view.used(kind)), u64::from(view.slots(kind)));
        let utilised = is_utilised(
            self.configuration.utilization_gate,
            &TaskKind::ALL.map(used),
        );
        for &kind in actions.kinds() {
            let mut pools = self.snapshot(kind, view.slots(kind).into());
            set_shares(
                view.slots(kind).into(),
                self.configuration.cap_by_demand,
                &mut pools,
            );
            let found = starved(now, &mut pools);
            self.store_times(kind, &pools);
            if utilised && !found.is_empty() {
                let round = Round {
                    now,
                    kind,
                    view,
                    pools: &pools,
                    starved: &found,
                };
                self.make_room(&round, actions);
            }
        }
    }

    /// Returns a snapshot of the tree with the jobs that have demand. Minimum shares are capped at the
    /// cluster size.
    fn snapshot(&self, kind: TaskKind, slots: u64) -> Vec<PoolSnapshot> {
        let claim = |claim: Claim| Claim {
            min: claim.min.min(slots),
            ..claim
        };
        let pools = self.tree.pools.iter().map(|pool| PoolSnapshot {
            parent: pool.parent,
            claim: claim(pool.claim(kind)),
            fifo: pool.order == PoolOrder::Fifo,
            preemptable: pool.preemptable,
            patience: pool.patience,
            last_at_min: pool.last_at_min[kind].max(self.waiting_since),
            jobs: pool
                .jobs
                .iter()
                .filter_map(|job| self.job_snapshot(*job, kind))
                .collect(),
            usage: 0,
            demand: 0,
            share: 0,
        });
        pools.collect()
    }

    fn job_snapshot(&self, job: JobId, kind: TaskKind) -> Option<JobSnapshot> {
        let entry = self.tree.jobs.get(&job)?;
        let held = entry.kinds[kind].demand.held;
        let times = entry.starvation[kind];
        if held.demand == 0 {
            return None;
        }
        let need = JobNeed {
            usage: held.usage,
            share: 0,
            demand: held.demand,
            last_at_share: times.last_at_share.max(self.waiting_since),
            next_check: times.next_check,
        };
        let submitted = entry.submitted;
        let priority = entry.priority;
        Some(JobSnapshot {
            job,
            submitted,
            priority,
            weight: self.tree.weights.of(entry, kind),
            need,
        })
    }

    fn store_times(&mut self, kind: TaskKind, pools: &[PoolSnapshot]) {
        for (pool, snapshot) in self.tree.pools.iter_mut().zip(pools) {
            pool.last_at_min[kind] = snapshot.last_at_min;
        }
        for job in pools.iter().flat_map(|pool| &pool.jobs) {
            if let Some(entry) = self.tree.jobs.get_mut(&job.job) {
                entry.starvation[kind].last_at_share = job.need.last_at_share;
            }
        }
    }

    /// Requests as many slots as the starved jobs lack, as far as there are victims.
    fn make_room(&mut self, round: &Round<'_>, actions: &mut Actions) {
        let kind = round.kind;
        let configuration = &self.configuration;
        let delay = recheck_after(
            configuration.kill_wait,
            configuration.heartbeat,
            configuration.recheck_delay,
        );
        let primitive = configuration.primitive;
        let grace = Some(configuration.kill_wait);
        let mut candidates = Candidates::collect(&round.kind, round.view, round.pools);
        for starved in round.starved {
            let snapshot = &round.pools[starved.pool].jobs[starved.place];
            if let Some(entry) = self.tree.jobs.get_mut(&snapshot.job) {
                entry.starvation[kind].next_check = round.now + delay;
            }
            let claimant = round
                .view
                .job(snapshot.job)
                .filter(|job| job.state() == JobState::Active);
            let Some(claimant) = claimant else { continue };
            let promised = u64::from(claimant.promised(kind));
            let JobNeed {
                usage,
                share,
                demand,
                ..
            } = snapshot.need;
            for taken in promised.max(starved.before)..starved.before + starved.amount {
                let own = Some(starved.pool).filter(|_| usage + taken >= share);
                let for_minimum_of = starved.for_minimum_of.or(own);
                let claimant = Claimant {
                    job: claimant,
                    pool: starved.pool,
                    for_minimum_of,
                };
                let Some(victims) = candidates.make_room(claimant, kind, &mut self.delay) else {
                    break;
                };
                for attempt in victims {
                    let job = snapshot.job;
                    let beneficiary = Some(snapshot.job);
                    let reason = format!(
                        "{job} starves: it holds {usage} of {demand} {kind} slots, its share is {share}"
                    );
                    actions.preempt(Preempt {
                        attempt,
                        primitive,
                        grace,
                        reason,
                        beneficiary,
                    });
                }
            }
        }
    }
}

impl<'a> Candidates<'a> {
    fn collect(
        kinds: &'a TaskKind,
        view: &ClusterView<'a>,
        pools: &[PoolSnapshot],
    ) -> Candidates<'a> {
        let kind = *kinds;
        let mut holder_of: SortedMap<JobId, usize> = SortedMap::new();
        let mut holders = Vec::new();
        let mut holder_jobs = Vec::new();
        let mut levels: Vec<PoolLevel> = pools.iter().map(PoolLevel::new).collect();
        let jobs = pools
            .iter()
            .enumerate()
            .flat_map(|(place, pool)| pool.jobs.iter().map(move |job| (place, job)));
        for (pool, job) in jobs {
            let known = view.job(job.job);
            let marked = known.map_or(0, |job| job.requested(kind));
            let usage = job.need.usage.saturating_sub(marked.into());
            holder_of.insert(job.job, holders.len());
            holders.push(Holder {
                usage,
                share: job.need.share,
                preemptable: pools[pool].preemptable,
            });
            holder_jobs.push((job.job, pool));
            levels[pool].holds += usage + u64::from(known.map_or(0, |job| job.promised(kind)));
        }
        for pool in (1..levels.len()).rev() {
            if let Some(parent) = levels[pool].parent {
                levels[parent].holds += levels[pool].holds;
            }
        }
        let mut workers = Vec::new();
        let mut attempts = Vec::new();
        let mut hosts = Vec::new();
        for (id, worker) in view.workers().filter(|(_, worker)| worker.takes_attempts()) {
            let live = worker
                .attempts()
                .filter(|attempt| attempt.task.kind == kind);
            let mut here: Vec<&Attempt> = live
                .filter_map(|attempt| view.attempt(attempt))
                .filter(|attempt| {
                    is_preemptable(attempt, view.now()) && view.request(attempt.id()).is_none()
                })
                .filter(|attempt| holder_of.contains_key(&attempt.id().task.job))
                .collect();
            // Youngest first: they lose the least work.
            sort_by_key(&mut here, |attempt| {
                Reverse((attempt.launched(), attempt.id()))
            });
            let container = |attempt: &&Attempt| Container {
                holder: holder_of[&attempt.id().task.job],
                size: 1,
                master: false,
            };
            let free = worker
                .free(kind)
                .saturating_sub(worker.reserved(kind))
                .into();
            hosts.push(Host {
                free,
                containers: here.iter().map(container).collect(),
            });
            attempts.push(here.iter().map(|attempt| attempt.id()).collect());
            workers.push(id);
        }
        Candidates {
            claims: Claims::new(*view, std::slice::from_ref(kinds)),
            workers,
            attempts,
            search: Search::new(hosts, holders),
            pools: levels,
            holders: holder_jobs,
        }
    }

    /// Returns the victims that free a slot which the claimant will use; empty if one is free, `None` if there
    /// are not enough.
    fn make_room(
        &mut self,
        claimant: Claimant<'_>,
        kind: TaskKind,
        delay: &mut Delay,
    ) -> Option<Vec<AttemptId>> {
        let full = |pool: usize| self.pools[pool].holds >= self.pools[pool].max;
        if above(&self.pools, claimant.pool).any(full) {
            return None;
        }
        let Candidates {
            claims,
            workers,
            attempts,
            search,
            pools,
            holders,
        } = self;
        let may_give = |holder: usize| {
            let (job, pool) = holders[holder];
            job != claimant.job.id() && may_give(pools, pool, claimant)
        };
        let now = claims.now();
        let offer = |host: usize| Offer {
            worker: workers[host],
            kind,
            reserved_for: Some(claimant.job.id()),
        };
        let wants = |host: usize| claims.wants_on(claimant.job.id(), workers[host]);
        let near = |host: usize| wants(host) && delay.would_take(claimant.job, offer(host));
        let mut room = search.make_room_of(1, near, may_give);
        if room.is_none() {
            // A job that waits for a slot near its data declines the others.
            let delay = RefCell::new(delay);
            let anywhere = |host: usize| {
                wants(host) && delay.borrow_mut().takes(now, claimant.job, offer(host))
            };
            room = search.make_room_of(1, anywhere, may_give);
        }
        let room = room?;
        claims.add(claimant.job.id(), workers[room.host]);
        let victims: Vec<AttemptId> = room
            .taken
            .iter()
            .map(|place| attempts[room.host][*place])
            .collect();
        for victim in &victims {
            let giver = holders
                .iter()
                .find(|(job, _)| *job == victim.task.job)
                .map(|(_, pool)| *pool);
            move_one(pools, giver, claimant.pool);
        }
        Some(victims)
    }
}

/// Returns whether a pool may give a slot to the claimant: no pool falls below its minimum, and none provides
/// for its own minimum.
fn may_give(pools: &[PoolLevel], giver: usize, claimant: Claimant<'_>) -> bool {
    if let Some(minimum) = claimant.for_minimum_of
        && above(pools, giver).any(|pool| pool == minimum)
    {
        return false;
    }
    let takers: Vec<usize> = above(pools, claimant.pool).collect();
    let mut givers = above(pools, giver).take_while(|pool| !takers.contains(pool));
    givers.all(|pool| pools[pool].holds > pools[pool].min)
}

impl PoolLevel {
    fn new(pool: &PoolSnapshot) -> PoolLevel {
        let PoolSnapshot {
            parent,
            claim,
            demand,
            ..
        } = *pool;
        PoolLevel {
            parent,
            holds: 0,
            min: claim.min.min(demand),
            max: claim.max,
        }
    }
}

/// Returns a pool and its ancestors.
fn above(pools: &[PoolLevel], pool: usize) -> impl Iterator<Item = usize> + '_ {
    std::iter::successors(Some(pool), |pool| pools[*pool].parent)
}

/// Moves the usage of one slot from one pool to another.
fn move_one(pools: &mut [PoolLevel], from: Option<usize>, to: usize) {
    let from: Vec<usize> = from
        .into_iter()
        .flat_map(|from| above(pools, from))
        .collect();
    let to: Vec<usize> = above(pools, to).collect();
    for pool in from {
        pools[pool].holds = pools[pool].holds.saturating_sub(1);
    }
    for pool in to {
        pools[pool].holds += 1;
    }
}

fn is_preemptable(attempt: &Attempt, now: Time) -> bool {
    attempt.holds_slot() && attempt.state() != AttemptState::Killing && !attempt.is_spared(now)
}
