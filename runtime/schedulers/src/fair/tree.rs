//! The tree of pools with the jobs in it, kept in order as jobs change.
//!
//! Owns who is below whom, and that every pool's sums and lines agree with its jobs. Does not own any
//! decision.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use napreduce_engine::{ByKind, Job, JobId, JobSpec, QueueLimits, QueueShare, Ratio, TaskKind, Time};

use crate::fair::configuration::{
    DEFAULT_POOL, FairConfiguration, FairConfigurationError, Placement, PoolConfiguration, UnknownPools,
};
use crate::fair::pool::{Amount, Children, Key, Pool, PoolId};
use crate::fair::shares::UNBOUNDED;
use crate::fair::weights::JobWeights;
use crate::running::{Group, Limit, RunningJobs};
use crate::turns::Turn;

/// The place of the root.
pub(super) const ROOT: PoolId = 0;

/// A job in its pool.
#[derive(Debug)]
pub(super) struct Entry {
    pub pool: PoolId,
    pub submitted: Time,
    pub priority: i32,
    pub kinds: ByKind<Part>,
    /// When its starvation is looked at.
    pub looks: ByKind<Look>,
}

/// What is remembered of a job's starvation for slots of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Look {
    /// When it last had its part of its share, wanted nothing more, or was submitted.
    pub last_at_share: Time,
    /// It starved, and is not looked at until then.
    pub next_check: Time,
}

/// What a job holds and wants of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct JobDemand {
    pub held: Amount,
    /// It has tasks that could be launched.
    pub open: bool,
    /// It has attempts that could only be resumed where they are.
    pub suspended: bool,
}

impl JobDemand {
    /// It has nothing to launch, but something to resume.
    pub(super) fn is_only_suspended(&self) -> bool {
        self.suspended && !self.open
    }
}

/// A job's demand, and the key under which it stands in the line of its pool.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Part {
    pub demand: JobDemand,
    pub turn: Turn,
    placed: Option<Key>,
}

#[derive(Debug)]
pub(super) struct Tree {
    pub pools: Vec<Pool>,
    by_name: BTreeMap<Arc<str>, PoolId>,
    pub jobs: BTreeMap<JobId, Entry>,
    /// How many jobs have something suspended and nothing to launch.
    pub only_suspended: ByKind<u32>,
    placement: Placement,
    unknown: UnknownPools,
    pub weights: JobWeights,
    user_max_running_jobs: Option<u32>,
    pub running: RunningJobs,
    /// Jobs come as they were when this was saved: that they hold or want something is no news.
    pub recalling: bool,
}

impl Tree {
    pub(super) fn new(configuration: &FairConfiguration) -> Tree {
        let mut tree = Tree {
            pools: vec![Pool::root(configuration)],
            by_name: BTreeMap::new(),
            jobs: BTreeMap::new(),
            only_suspended: ByKind::default(),
            placement: configuration.placement,
            unknown: configuration.unknown_pools,
            weights: JobWeights {
                by_size: configuration.size_based_weight,
                by_priority: configuration.priority_weight,
            },
            user_max_running_jobs: configuration.user_max_running_jobs,
            running: RunningJobs::default(),
            recalling: false,
        };
        tree.add_below(ROOT, &configuration.root);
        tree
    }

    fn add_below(&mut self, parent: PoolId, configuration: &PoolConfiguration) {
        for (name, configuration) in &configuration.pools {
            let pool = self.add(parent, name, configuration, Time(0));
            self.add_below(pool, configuration);
        }
    }

    fn add(&mut self, parent: PoolId, name: &str, configuration: &PoolConfiguration, now: Time) -> PoolId {
        let path =
            if parent == ROOT { name.to_owned() } else { format!("{}.{name}", self.pools[parent].name) };
        let path: Arc<str> = Arc::from(path);
        let pool = self.pools[parent].below(parent, Arc::clone(&path), configuration, now);
        self.pools[parent].holds_pools = true;
        self.pools.push(pool);
        self.by_name.insert(path, self.pools.len() - 1);
        self.pools.len() - 1
    }

    /// The path of the pool that a job is to go to, or why there is none for it.
    pub(super) fn path_for(&self, spec: &JobSpec) -> Result<String, FairConfigurationError> {
        let asked = match self.placement {
            Placement::Queue => spec.queue.strip_prefix("root.").unwrap_or(&spec.queue),
            Placement::User => &spec.user,
        };
        let parts = || asked.split('.').filter(|part| !part.is_empty());
        let path = if self.placement == Placement::User {
            asked.replace('.', "_")
        } else {
            parts().collect::<Vec<_>>().join(".")
        };
        let path = if path.is_empty() || path == "root" { DEFAULT_POOL.to_owned() } else { path };
        let known = self.by_name.contains_key(path.as_str()) || path == DEFAULT_POOL;
        match self.unknown {
            _ if known => Ok(path),
            UnknownPools::Create => Ok(path),
            UnknownPools::Default => Ok(DEFAULT_POOL.to_owned()),
            UnknownPools::Refuse => Err(FairConfigurationError::UnknownPool(path)),
        }
    }

    /// The pool at a path that can hold jobs, made if need be: below a pool of pools it is that one's default
    /// pool.
    pub(super) fn pool_at(&mut self, path: &str, now: Time) -> PoolId {
        let pool = self.make(path, now);
        if self.pools[pool].holds_pools { self.make(&format!("{path}.{DEFAULT_POOL}"), now) } else { pool }
    }

    /// The pool at a path, made if need be, with those above it. A pool that holds jobs gets no pools below
    /// it: what is not known there is itself.
    pub(super) fn make(&mut self, path: &str, now: Time) -> PoolId {
        let (mut pool, mut end) = (ROOT, 0);
        while end < path.len() {
            let start = end;
            end = path[start..].find('.').map_or(path.len(), |dot| start + dot);
            pool = match self.by_name.get(&path[..end]) {
                Some(known) => *known,
                None if !self.pools[pool].jobs.is_empty() => return pool,
                None => self.add(pool, &path[start..end], &PoolConfiguration::default(), now),
            };
            end += 1;
        }
        pool
    }

    /// A job changed, or is new. One that waits for others to end has and wants nothing.
    pub(super) fn update(&mut self, now: Time, job: &Job) {
        let id = job.id();
        if self.running.is_waiting(id) {
            return;
        }
        let part = |kind| {
            let (eligible, usage) = (job.eligible_count(kind), job.holding(kind));
            let demand = job.demand_beside(kind, eligible);
            JobDemand {
                held: Amount { usage: usage.into(), demand: demand.into() },
                open: eligible > 0,
                suspended: demand > usage + eligible,
            }
        };
        let demands = ByKind::of(part);
        if !self.set(now, id, demands) {
            let path = self.path_for(job.spec()).unwrap_or_else(|_| DEFAULT_POOL.to_owned());
            let pool = self.pool_at(&path, now);
            let look = Look { last_at_share: now, next_check: Time(0) };
            self.enter(job, pool, ByKind { map: look, reduce: look }, ByKind::default());
            if !self.running.is_waiting(id) {
                self.set(now, id, demands);
            }
        }
    }

    /// A job comes to a pool; those that may run now, as known by [`RunningJobs::enter`].
    pub(super) fn enter(
        &mut self,
        job: &Job,
        pool: PoolId,
        looks: ByKind<Look>,
        turns: ByKind<Turn>,
    ) -> Vec<JobId> {
        self.pools[pool].jobs.insert(job.id());
        let (submitted, priority) = (job.submitted(), job.spec().priority);
        let kinds = ByKind::of(|kind| Part { turn: turns[kind], ..Part::default() });
        self.jobs.insert(job.id(), Entry { pool, submitted, priority, kinds, looks });
        // It runs when its master does.
        let limits = if job.is_managed() { Vec::new() } else { self.limits_of(pool, &job.spec().user) };
        self.running.enter(job.id(), submitted, limits)
    }

    /// The limits on running jobs that count a job of this user in this pool.
    fn limits_of(&self, pool: PoolId, user: &str) -> Vec<Limit> {
        let above = std::iter::successors(Some(pool), |&id| self.pools[id].parent);
        let of_pool = |id| Some((Group::Queue(id), self.pools[id].max_running_jobs?));
        let of_user = self.user_max_running_jobs.map(|most| (Group::User(user.to_owned()), most));
        above.filter_map(of_pool).chain(of_user).collect()
    }

    /// The pools below the root, as they are configured or were made.
    pub(super) fn listed(&self) -> Vec<QueueShare> {
        let share = |pool: &Pool| {
            let limits = |kind| QueueLimits {
                guaranteed: (pool.min[kind] > 0).then(|| Ratio::whole(pool.min[kind])),
                maximum: (pool.max[kind] < UNBOUNDED).then_some(pool.max[kind]),
            };
            QueueShare {
                name: pool.name.to_string(),
                parent: pool
                    .parent
                    .filter(|parent| *parent != ROOT)
                    .map(|parent| self.pools[parent].name.to_string()),
                weight: Some(pool.weight),
                limits: ByKind::of(limits),
                remark: None,
                jobs: pool.jobs.iter().copied().collect(),
            }
        };
        self.pools.iter().skip(1).map(share).collect()
    }

    /// The pools with a maximum of map slots that a job like this is in, as far as they are there.
    pub(super) fn maxima(&self, spec: &JobSpec) -> Vec<(String, u64)> {
        let path = self.path_for(spec).unwrap_or_else(|_| DEFAULT_POOL.to_owned());
        let inner = format!("{path}.{DEFAULT_POOL}");
        let ends = inner.match_indices('.').map(|(end, _)| end).chain([inner.len()]);
        let pools = ends.filter_map(|end| self.by_name.get(&inner[..end])).map(|pool| &self.pools[*pool]);
        let limited = pools.filter(|pool| pool.max.map < UNBOUNDED);
        limited.map(|pool| (pool.name.to_string(), pool.max.map)).collect()
    }

    /// Why a job has no place among those that run.
    pub(super) fn why_not_running(&self, job: JobId) -> Option<String> {
        self.running.why_waiting(job, |pool| format!("pool {}", self.pools[pool].name))
    }

    /// A job is over; those that waited for it and may run now.
    pub(super) fn remove(&mut self, now: Time, job: JobId) -> Vec<JobId> {
        if !self.jobs.contains_key(&job) {
            return Vec::new();
        }
        self.set(now, job, ByKind::default());
        if let Some(entry) = self.jobs.remove(&job) {
            self.pools[entry.pool].jobs.remove(&job);
        }
        self.running.leave(job)
    }

    /// A job that waited for others to end wants something from now on.
    pub(super) fn begins(&mut self, now: Time, job: JobId) {
        if let Some(entry) = self.jobs.get_mut(&job) {
            for kind in TaskKind::ALL {
                entry.looks[kind].last_at_share = now;
            }
        }
    }

    /// What a job holds and wants is this now: it and every pool above it take their new places. False when
    /// the job is not known.
    fn set(&mut self, now: Time, job: JobId, demands: ByKind<JobDemand>) -> bool {
        let Some(entry) = self.jobs.get_mut(&job) else { return false };
        let (pool, mut before) = (entry.pool, ByKind::<JobDemand>::default());
        for kind in TaskKind::ALL {
            let (demand, was) = (demands[kind], entry.kinds[kind].demand);
            before[kind] = was;
            if demand == was {
                continue;
            }
            entry.kinds[kind].demand = demand;
            if was.held.demand <= was.held.usage && !self.recalling {
                entry.looks[kind].last_at_share = now;
            }
            let (place, standing) = (entry.kinds[kind].turn.place(), self.weights.standing(entry, kind));
            self.pools[pool].turns[kind].take(now, &mut entry.kinds[kind].turn, standing, self.recalling);
            self.only_suspended[kind] += u32::from(demand.is_only_suspended());
            self.only_suspended[kind] -= u32::from(was.is_only_suspended());
            let moves = was.held.usage != demand.held.usage
                || self.weights.by_size
                || demand.open != was.open
                || entry.kinds[kind].turn.place() != place;
            if !moves {
                continue;
            }
            let key = demand.open.then(|| self.weights.key(job, entry, kind, self.pools[pool].order));
            let left = std::mem::replace(&mut entry.kinds[kind].placed, key);
            replace(&mut self.pools[pool].lines[kind], left, key);
        }
        for kind in TaskKind::ALL.into_iter().filter(|kind| before[*kind] != demands[*kind]) {
            self.update_pools(now, pool, kind, before[kind].held, demands[kind].held);
        }
        true
    }

    /// Carries a change of what is held and wanted from a pool up to the root.
    fn update_pools(&mut self, now: Time, from: PoolId, kind: TaskKind, before: Amount, after: Amount) {
        let mut next = Some(from);
        while let Some(id) = next {
            let pool = &mut self.pools[id];
            let (had_min, place) = (pool.has_min(kind), pool.turn[kind].place());
            let held = &mut pool.held[kind];
            held.usage = held.usage + after.usage - before.usage;
            held.demand = held.demand + after.demand - before.demand;
            if had_min && !self.recalling {
                pool.last_at_min[kind] = now;
            }
            next = pool.parent;
            let Some(parent) = pool.parent else { continue };
            let (mut turn, standing) = (pool.turn[kind], pool.standing(kind));
            self.pools[parent].turns[kind].take(now, &mut turn, standing, self.recalling);
            let pool = &mut self.pools[id];
            pool.turn[kind] = turn;
            let open = pool.is_open(kind);
            let moves = before.usage != after.usage || pool.min[kind] > 0 || turn.place() != place;
            if !moves && open == pool.placed[kind].is_some() {
                continue;
            }
            let key = open.then(|| pool.key(id, kind));
            let was = std::mem::replace(&mut pool.placed[kind], key);
            replace(&mut self.pools[parent].lines[kind], was, key);
        }
    }

    /// Where a job stands in its pool.
    pub(super) fn job_key(&self, job: JobId, entry: &Entry, kind: TaskKind) -> Key {
        self.weights.key(job, entry, kind, self.pools[entry.pool].order)
    }

    /// Whether every pool above a job may hold another slot.
    pub(super) fn has_room(&self, job: JobId, kind: TaskKind) -> bool {
        let Some(entry) = self.jobs.get(&job) else { return false };
        let mut next = Some(entry.pool);
        while let Some(id) = next {
            if !self.pools[id].has_room(kind) {
                return false;
            }
            next = self.pools[id].parent;
        }
        true
    }
}

/// A child takes another place in a line, or leaves it.
fn replace(line: &mut Children, before: Option<Key>, after: Option<Key>) {
    if let Some(key) = before {
        line.remove(&key);
    }
    if let Some(key) = after {
        line.insert(key);
    }
}
