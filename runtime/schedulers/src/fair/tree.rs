//! The tree of pools and their jobs. Every change of a job updates the sums and the ordered children of the
//! pools above it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use napreduce_engine::{
    ByKind, Job, JobId, JobSpec, QueueLimits, QueueShare, Ratio, SortedMap, TaskKind, Time,
};

use crate::fair::configuration::{
    DEFAULT_POOL, FairConfiguration, FairConfigurationError, Placement, PoolConfiguration,
    UnknownPools,
};
use crate::fair::pool::{Amount, Children, Key, Pool, PoolId};
use crate::fair::shares::UNBOUNDED;
use crate::fair::weights::JobWeights;
use crate::running::{Group, Limit, RunningJobs};
use crate::turns::Turn;

/// Index of the root.
pub(super) const ROOT: PoolId = 0;

/// A job in its pool.
#[derive(Debug)]
pub(super) struct Entry {
    pub pool: PoolId,
    pub submitted: Time,
    pub priority: i32,
    pub kinds: ByKind<Part>,
    /// Starvation times per kind.
    pub starvation: ByKind<StarvationTimes>,
}

/// Starvation times of a job for one slot kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StarvationTimes {
    /// When it last held its threshold or had no unmet demand, or was submitted.
    pub last_at_share: Time,
    /// Earliest next check after it starved.
    pub next_check: Time,
}

/// The usage and demand of a job for one slot kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct JobDemand {
    pub held: Amount,
    /// Whether it has tasks to launch.
    pub open: bool,
    /// Whether it has suspended attempts, which can only resume on their workers.
    pub suspended: bool,
}

impl JobDemand {
    pub(super) fn is_only_suspended(&self) -> bool {
        self.suspended && !self.open
    }
}

/// The demand and ordering of a job for one slot kind.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Part {
    pub demand: JobDemand,
    pub turn: Turn,
    placed: Option<Key>,
}

#[derive(Debug)]
pub(super) struct Tree {
    pub pools: Vec<Pool>,
    by_name: SortedMap<Arc<str>, PoolId>,
    pub jobs: SortedMap<JobId, Entry>,
    /// Number of jobs with suspended attempts and nothing to launch.
    pub only_suspended: ByKind<u32>,
    placement: Placement,
    unknown: UnknownPools,
    pub weights: JobWeights,
    user_max_running_jobs: Option<u32>,
    pub running: RunningJobs,
    /// Set while jobs are reported after a restore: their usage and demand are then not changes.
    pub restoring: bool,
}

impl Tree {
    pub(super) fn new(configuration: &FairConfiguration) -> Tree {
        let mut tree = Tree {
            pools: vec![Pool::root(configuration)],
            by_name: SortedMap::new(),
            jobs: SortedMap::new(),
            only_suspended: ByKind::default(),
            placement: configuration.placement,
            unknown: configuration.unknown_pools,
            weights: JobWeights {
                by_size: configuration.size_based_weight,
                by_priority: configuration.priority_weight,
            },
            user_max_running_jobs: configuration.user_max_running_jobs,
            running: RunningJobs::default(),
            restoring: false,
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

    fn add(
        &mut self,
        parent: PoolId,
        name: &str,
        configuration: &PoolConfiguration,
        now: Time,
    ) -> PoolId {
        let path = if parent == ROOT {
            name.to_owned()
        } else {
            format!("{}.{name}", self.pools[parent].name)
        };
        let path: Arc<str> = Arc::from(path);
        let pool = self.pools[parent].below(parent, Arc::clone(&path), configuration, now);
        self.pools[parent].holds_pools = true;
        self.pools.push(pool);
        self.by_name.insert(path, self.pools.len() - 1);
        self.pools.len() - 1
    }

    /// Returns the path of the pool for a job, or an error if the job is to be rejected.
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
        let path = if path.is_empty() || path == "root" {
            DEFAULT_POOL.to_owned()
        } else {
            path
        };
        let known = self.by_name.contains_key(path.as_str()) || path == DEFAULT_POOL;
        match self.unknown {
            _ if known => Ok(path),
            UnknownPools::Create => Ok(path),
            UnknownPools::Default => Ok(DEFAULT_POOL.to_owned()),
            UnknownPools::Refuse => Err(FairConfigurationError::UnknownPool(path)),
        }
    }

    /// Returns the pool at `path` that can hold jobs, created if needed. If `path` holds pools, this is its
    /// default pool.
    pub(super) fn pool_at(&mut self, path: &str, now: Time) -> PoolId {
        let pool = self.make(path, now);
        if self.pools[pool].holds_pools {
            self.make(&format!("{path}.{DEFAULT_POOL}"), now)
        } else {
            pool
        }
    }

    /// Returns the pool at `path`, created with its ancestors if needed. A pool that holds jobs gets no
    /// children; it is returned instead.
    pub(super) fn make(&mut self, path: &str, now: Time) -> PoolId {
        let mut pool = ROOT;
        let mut end = 0;
        while end < path.len() {
            let start = end;
            end = path[start..]
                .find('.')
                .map_or(path.len(), |dot| start + dot);
            pool = match self.by_name.get(&path[..end]) {
                Some(known) => *known,
                None if !self.pools[pool].jobs.is_empty() => return pool,
                None => self.add(pool, &path[start..end], &PoolConfiguration::default(), now),
            };
            end += 1;
        }
        pool
    }

    /// Records the demand of a new or changed job. A job that waits for a limit on running jobs has no
    /// demand.
    pub(super) fn update(&mut self, now: Time, job: &Job) {
        let id = job.id();
        if self.running.is_waiting(id) {
            return;
        }
        let part = |kind| {
            let eligible = job.eligible_count(kind);
            let usage = job.holding(kind);
            let demand = job.demand_with(kind, eligible);
            JobDemand {
                held: Amount {
                    usage: usage.into(),
                    demand: demand.into(),
                },
                open: eligible > 0,
                suspended: demand > usage + eligible,
            }
        };
        let demands = ByKind::from_fn(part);
        if !self.set(now, id, demands) {
            let path = self
                .path_for(job.spec())
                .unwrap_or_else(|_| DEFAULT_POOL.to_owned());
            let pool = self.pool_at(&path, now);
            let times = StarvationTimes {
                last_at_share: now,
                next_check: Time(0),
            };
            self.enter(
                job,
                pool,
                ByKind {
                    map: times,
                    reduce: times,
                },
                ByKind::default(),
            );
            if !self.running.is_waiting(id) {
                self.set(now, id, demands);
            }
        }
    }

    /// Adds a job to a pool. Returns other jobs that may run now; see [`RunningJobs::enter`].
    pub(super) fn enter(
        &mut self,
        job: &Job,
        pool: PoolId,
        starvation: ByKind<StarvationTimes>,
        turns: ByKind<Turn>,
    ) -> Vec<JobId> {
        self.pools[pool].jobs.insert(job.id());
        let submitted = job.submitted();
        let priority = job.spec().priority;
        let kinds = ByKind::from_fn(|kind| Part {
            turn: turns[kind],
            ..Part::default()
        });
        self.jobs.insert(
            job.id(),
            Entry {
                pool,
                submitted,
                priority,
                kinds,
                starvation,
            },
        );
        // A managed job counts when its master does.
        let limits = if job.is_managed() {
            Vec::new()
        } else {
            self.limits_of(pool, &job.spec().user)
        };
        self.running.enter(job.id(), submitted, limits)
    }

    /// Returns the limits on running jobs that apply to a job.
    fn limits_of(&self, pool: PoolId, user: &str) -> Vec<Limit> {
        let above = std::iter::successors(Some(pool), |&id| self.pools[id].parent);
        let of_pool = |id| Some((Group::Queue(id), self.pools[id].max_running_jobs?));
        let of_user = self
            .user_max_running_jobs
            .map(|most| (Group::User(user.to_owned()), most));
        above.filter_map(of_pool).chain(of_user).collect()
    }

    /// Lists the pools below the root.
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
                limits: ByKind::from_fn(limits),
                remark: None,
                jobs: pool.jobs.iter().copied().collect(),
            }
        };
        self.pools.iter().skip(1).map(share).collect()
    }

    /// Returns the existing pools of this job that have a maximum of map slots.
    pub(super) fn maxima(&self, spec: &JobSpec) -> Vec<(String, u64)> {
        let path = self
            .path_for(spec)
            .unwrap_or_else(|_| DEFAULT_POOL.to_owned());
        let inner = format!("{path}.{DEFAULT_POOL}");
        let ends = inner
            .match_indices('.')
            .map(|(end, _)| end)
            .chain([inner.len()]);
        let pools = ends
            .filter_map(|end| self.by_name.get(&inner[..end]))
            .map(|pool| &self.pools[*pool]);
        let limited = pools.filter(|pool| pool.max.map < UNBOUNDED);
        limited
            .map(|pool| (pool.name.to_string(), pool.max.map))
            .collect()
    }

    /// Returns the limit for which a job waits.
    pub(super) fn why_not_running(&self, job: JobId) -> Option<String> {
        self.running
            .why_waiting(job, |pool| format!("pool {}", self.pools[pool].name))
    }

    /// Removes a finished job. Returns the jobs that may run now.
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

    /// Starts the starvation clock of a job that was waiting for a limit.
    pub(super) fn start_clock(&mut self, now: Time, job: JobId) {
        if let Some(entry) = self.jobs.get_mut(&job) {
            for kind in TaskKind::ALL {
                entry.starvation[kind].last_at_share = now;
            }
        }
    }

    /// Sets the demand of a job, and re-sorts it and the pools above it. Returns false if the job is unknown.
    fn set(&mut self, now: Time, job: JobId, demands: ByKind<JobDemand>) -> bool {
        let Some(entry) = self.jobs.get_mut(&job) else {
            return false;
        };
        let pool = entry.pool;
        let mut before = ByKind::<JobDemand>::default();
        for kind in TaskKind::ALL {
            let demand = demands[kind];
            let was = entry.kinds[kind].demand;
            before[kind] = was;
            if demand == was {
                continue;
            }
            entry.kinds[kind].demand = demand;
            if was.held.demand <= was.held.usage && !self.restoring {
                entry.starvation[kind].last_at_share = now;
            }
            let place = entry.kinds[kind].turn.place();
            let standing = self.weights.standing(entry, kind);
            self.pools[pool].turns[kind].take(
                now,
                &mut entry.kinds[kind].turn,
                standing,
                self.restoring,
            );
            self.only_suspended[kind] += u32::from(demand.is_only_suspended());
            self.only_suspended[kind] -= u32::from(was.is_only_suspended());
            let moves = was.held.usage != demand.held.usage
                || self.weights.by_size
                || demand.open != was.open
                || entry.kinds[kind].turn.place() != place;
            if !moves {
                continue;
            }
            let key = demand
                .open
                .then(|| self.weights.key(job, entry, kind, self.pools[pool].order));
            let left = std::mem::replace(&mut entry.kinds[kind].placed, key);
            replace(&mut self.pools[pool].lines[kind], left, key);
        }
        for kind in TaskKind::ALL
            .into_iter()
            .filter(|kind| before[*kind] != demands[*kind])
        {
            self.update_pools(now, pool, kind, before[kind].held, demands[kind].held);
        }
        true
    }

    /// Propagates a change of usage and demand from a pool up to the root.
    fn update_pools(
        &mut self,
        now: Time,
        from: PoolId,
        kind: TaskKind,
        before: Amount,
        after: Amount,
    ) {
        let mut next = Some(from);
        while let Some(id) = next {
            let pool = &mut self.pools[id];
            let had_min = pool.has_min(kind);
            let place = pool.turn[kind].place();
            let held = &mut pool.held[kind];
            held.usage = held.usage + after.usage - before.usage;
            held.demand = held.demand + after.demand - before.demand;
            if had_min && !self.restoring {
                pool.last_at_min[kind] = now;
            }
            next = pool.parent;
            let Some(parent) = pool.parent else { continue };
            let mut turn = pool.turn[kind];
            let standing = pool.standing(kind);
            self.pools[parent].turns[kind].take(now, &mut turn, standing, self.restoring);
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

    pub(super) fn job_key(&self, job: JobId, entry: &Entry, kind: TaskKind) -> Key {
        self.weights
            .key(job, entry, kind, self.pools[entry.pool].order)
    }

    /// Whether every pool above a job is below its maximum.
    pub(super) fn has_room(&self, job: JobId, kind: TaskKind) -> bool {
        let Some(entry) = self.jobs.get(&job) else {
            return false;
        };
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

/// Replaces the key of a child in an ordered set.
fn replace(line: &mut Children, before: Option<Key>, after: Option<Key>) {
    if let Some(key) = before {
        line.remove(&key);
    }
    if let Some(key) = after {
        line.insert(key);
    }
}
