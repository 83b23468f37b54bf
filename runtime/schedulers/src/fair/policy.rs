//! The policy: walks down the tree of pools to assign a free slot, and runs the periodic preemption update.

use serde::{Deserialize, Serialize};

use napreduce_engine::{
    Actions, ByKind, ClusterView, Event, Job, JobChange, JobId, JobSpec, Offer, PolicyRefusal,
    QueueShare, Scheduler, SortedMap, SortedSet, TaskKind, Time, serve,
};

use crate::fair::configuration::{FairConfiguration, FairConfigurationError, Placement, PoolOrder};
use crate::fair::pool::{Key, Pool, PoolId};
use crate::fair::tree::{Entry, ROOT, StarvationTimes, Tree};
use crate::serving::Delay;
use crate::tables::{Built, ConfiguredPrimitive, JobAttributes, PolicyTable, PolicyTables};
use crate::turns::{Turn, Turns};

/// Children whose only use of the offered worker is to resume a suspended task, by pool.
type Resumable = SortedMap<PoolId, SortedSet<Key>>;

/// Weighted shares of all slots for pools and the jobs in them; see `docs/schedulers/fair.md`.
pub struct Fair {
    pub(super) configuration: FairConfiguration,
    pub(super) tree: Tree,
    pub(super) delay: Delay,
    /// When shares and starvation are next updated; `None` while no job waits.
    pub(super) next_update: Option<Time>,
    /// When demand first exceeded the free slots: before that, every job had what it wanted.
    pub(super) waiting_since: Time,
    /// Saved jobs that have not been reported since the restore: pool, starvation times, turns.
    remembered: SortedMap<JobId, (String, ByKind<StarvationTimes>, ByKind<Turn>)>,
}

/// The state that cannot be derived from the cluster view.
#[derive(Serialize, Deserialize)]
struct Saved {
    /// In creation order.
    pools: Vec<SavedPool>,
    jobs: Vec<(JobId, String, ByKind<StarvationTimes>, ByKind<Turn>)>,
    delay: Delay,
    next_update: Option<Time>,
    waiting_since: Time,
    #[serde(default)]
    running: Vec<JobId>,
}

#[derive(Serialize, Deserialize)]
struct SavedPool {
    name: String,
    last_at_min: ByKind<Time>,
    turn: ByKind<Turn>,
    turns: ByKind<Turns>,
}

impl Fair {
    /// Creates the policy.
    ///
    /// # Errors
    /// Fails if a value is invalid.
    pub fn new(configuration: FairConfiguration) -> Result<Fair, FairConfigurationError> {
        configuration.check()?;
        Ok(Fair {
            tree: Tree::new(&configuration),
            delay: Delay::new(configuration.delay),
            next_update: None,
            waiting_since: Time(0),
            remembered: SortedMap::new(),
            configuration,
        })
    }

    /// Returns the jobs that can resume a task on the offered worker but launch none, and their ancestors
    /// that have nothing to launch.
    fn resumable(&self, view: &ClusterView<'_>, offer: Offer) -> Resumable {
        let mut resumable = Resumable::new();
        if self.tree.only_suspended[offer.kind] == 0
            || !view.has_suspended(offer.kind, offer.worker)
        {
            return resumable;
        }
        let attempts = view
            .worker(offer.worker)
            .into_iter()
            .flat_map(|worker| worker.attempts());
        let jobs: SortedSet<JobId> = attempts.map(|attempt| attempt.task.job).collect();
        for job in jobs {
            let Some(entry) = self.tree.jobs.get(&job) else {
                continue;
            };
            let only = entry.kinds[offer.kind].demand.is_only_suspended();
            let here = view
                .job(job)
                .is_some_and(|job| job.suspended_on(offer.kind, offer.worker).is_some());
            if !only || !here || !self.tree.has_room(job, offer.kind) {
                continue;
            }
            let key = self.tree.job_key(job, entry, offer.kind);
            resumable.get_or_default(entry.pool).insert(key);
            let mut pool = entry.pool;
            while let Some(parent) = self.tree.pools[pool].parent {
                if !self.tree.pools[pool].is_open(offer.kind) {
                    let key = self.tree.pools[pool].key(pool, offer.kind);
                    resumable.get_or_default(parent).insert(key);
                }
                pool = parent;
            }
        }
        resumable
    }

    fn assign(&mut self, view: &ClusterView<'_>, offer: Offer, actions: &mut Actions) {
        if let Some(job) = offer.reserved_for {
            let served = self.tree.has_room(job, offer.kind)
                && view.job(job).is_some_and(|job| serve(job, offer, actions));
            if !served {
                actions.decline("the slot is reserved for a job that cannot use it now");
            }
            return;
        }
        let resumable = self.resumable(view, offer);
        if (Walk {
            tree: &self.tree,
            delay: &mut self.delay,
            resumable: &resumable,
            view,
            offer,
        })
        .assign_below(ROOT, actions)
        {
            return;
        }
        if self.tree.pools[ROOT].lines[offer.kind].is_empty()
            && self.tree.only_suspended[offer.kind] == 0
        {
            actions.decline_kind("every pool with demand is at its maximum");
        } else {
            actions.decline("no job of a pool below its maximum can use the slot");
        }
    }

    /// Whether a job could use another slot of these kinds.
    fn has_unmet_demand(&self, kinds: &[TaskKind]) -> bool {
        let waits = |kind: &TaskKind| {
            self.tree.only_suspended[*kind] > 0 || !self.tree.pools[ROOT].lines[*kind].is_empty()
        };
        kinds.iter().any(waits)
    }
}

/// One walk down the tree for a free slot.
struct Walk<'a, 'v> {
    tree: &'a Tree,
    delay: &'a mut Delay,
    resumable: &'a Resumable,
    view: &'a ClusterView<'v>,
    offer: Offer,
}

impl Walk<'_, '_> {
    /// Assigns the slot to the first child, in serving order, that can use it. Returns false if none can.
    fn assign_below(&mut self, pool: PoolId, actions: &mut Actions) -> bool {
        let mut launching = self.tree.pools[pool].lines[self.offer.kind]
            .iter()
            .peekable();
        let mut resuming = self
            .resumable
            .get(&pool)
            .into_iter()
            .flat_map(SortedSet::iter)
            .peekable();
        loop {
            let first = match (launching.peek(), resuming.peek()) {
                (Some(launch), Some(resume)) if resume < launch => resuming.next(),
                (None, _) => resuming.next(),
                (Some(_), _) => launching.next(),
            };
            let Some(Key { name, .. }) = first else {
                return false;
            };
            let served = if self.tree.pools[pool].holds_pools {
                self.assign_below(*name as PoolId, actions)
            } else {
                self.view
                    .job(JobId(*name))
                    .is_some_and(|job| self.delay.serve(self.view.now(), job, self.offer, actions))
            };
            if served {
                return true;
            }
        }
    }
}

impl Fair {
    /// Adds the jobs of a pool that want slots, in serving order.
    fn add_in_order(&self, pool: PoolId, kind: TaskKind, jobs: &mut Vec<JobId>) {
        for Key { name, .. } in self.tree.pools[pool].lines[kind].iter() {
            if self.tree.pools[pool].holds_pools {
                self.add_in_order(*name as PoolId, kind, jobs);
            } else {
                jobs.push(JobId(*name));
            }
        }
    }
}

impl Scheduler for Fair {
    fn order(&self, kind: TaskKind, _view: &ClusterView<'_>) -> Vec<JobId> {
        let mut jobs = Vec::new();
        self.add_in_order(ROOT, kind, &mut jobs);
        jobs
    }

    fn on_event(&mut self, _now: Time, _event: &Event, _view: &ClusterView<'_>) {}

    fn job_changed(&mut self, now: Time, job: JobId, view: &ClusterView<'_>) {
        let Some(known) = view.job(job) else {
            self.delay.forget(job);
            for next in self.tree.remove(now, job) {
                self.tree.start_clock(now, next);
                self.job_changed(now, next, view);
            }
            return;
        };
        if let Some((pool, starvation, turns)) = self.remembered.remove(&job) {
            let pool = self.tree.pool_at(&pool, now);
            for next in self.tree.enter(known, pool, starvation, turns) {
                self.job_changed(now, next, view);
            }
        }
        self.tree.update(now, known);
        self.tree.restoring = !self.remembered.is_empty();
    }

    fn schedule(&mut self, now: Time, view: &ClusterView<'_>, actions: &mut Actions) {
        if let Some(offer) = actions.offer() {
            return self.assign(view, offer, actions);
        }
        if !self.configuration.preemption {
            return;
        }
        if !self.has_unmet_demand(actions.kinds()) {
            self.next_update = None;
            return;
        }
        if self.next_update.is_none() {
            self.waiting_since = now;
        }
        if self.next_update.is_none_or(|due| now >= due) {
            self.next_update = Some(now + self.configuration.update_interval);
            self.preempt(now, view, actions);
        }
    }

    fn can_change(&self, change: &JobChange) -> Result<(), PolicyRefusal> {
        match (&change.queue, self.configuration.placement) {
            (Some(_), Placement::User) => Err(PolicyRefusal::PoolsByUser),
            _ => Ok(()),
        }
    }

    fn queues(&self, _view: &ClusterView<'_>) -> Option<Vec<QueueShare>> {
        Some(self.tree.listed())
    }

    fn maxima(&self, spec: &JobSpec, _slots: u32) -> Vec<(String, u64)> {
        self.tree.maxima(spec)
    }

    fn admits(&self, spec: &JobSpec) -> Result<(), PolicyRefusal> {
        self.tree
            .path_for(spec)
            .map(drop)
            .map_err(|error| PolicyRefusal::Queue(error.to_string()))
    }

    fn is_before(&self, _kind: TaskKind, one: &Job, other: &Job) -> bool {
        let pool_of = |job: &Job| self.tree.jobs.get(&job.id()).map(|entry| entry.pool);
        let Some(pool) = pool_of(one) else {
            return false;
        };
        let shares_pool = pool_of(other) == Some(pool);
        let is_fifo = self.tree.pools[pool].order == PoolOrder::Fifo;
        shares_pool && is_fifo && one.default_order() < other.default_order()
    }

    fn why_limited(&self, job: JobId) -> Option<String> {
        self.tree
            .why_not_running(job)
            .map(|why| format!("it waits: {why}"))
    }

    fn remarks(&self, _now: Time, job: &Job, _view: &ClusterView<'_>) -> Vec<String> {
        self.why_limited(job.id()).into_iter().collect()
    }

    fn save(&self) -> Option<String> {
        let name = |pool: PoolId| self.tree.pools[pool].name.to_string();
        let turns = |entry: &Entry| ByKind::from_fn(|kind| entry.kinds[kind].turn);
        let jobs = self
            .tree
            .jobs
            .iter()
            .map(|(id, entry)| (*id, name(entry.pool), entry.starvation, turns(entry)));
        let pool = |pool: &Pool| {
            let Pool {
                last_at_min,
                turn,
                turns,
                ..
            } = *pool;
            SavedPool {
                name: pool.name.to_string(),
                last_at_min,
                turn,
                turns,
            }
        };
        let saved = Saved {
            pools: self.tree.pools.iter().map(pool).collect(),
            jobs: jobs.collect(),
            delay: self.delay.clone(),
            next_update: self.next_update,
            waiting_since: self.waiting_since,
            running: self.tree.running.running(),
        };
        Some(serde_json::to_string(&saved).expect("plain data is text"))
    }

    fn restore(&mut self, saved: Option<&str>) -> Result<(), String> {
        let saved = saved.ok_or("fair: the snapshot has no saved state")?;
        let saved: Saved = serde_json::from_str(saved)
            .map_err(|error| format!("fair: invalid saved state: {error}"))?;
        for SavedPool {
            name,
            last_at_min,
            turn,
            turns,
        } in saved.pools
        {
            let pool = if name == "root" {
                ROOT
            } else {
                self.tree.make(&name, Time(0))
            };
            let pool = &mut self.tree.pools[pool];
            (pool.last_at_min, pool.turn, pool.turns) = (last_at_min, turn, turns);
        }
        self.tree.running.restore(saved.running);
        let jobs = saved.jobs.into_iter();
        self.remembered = jobs
            .map(|(job, pool, starvation, turns)| (job, (pool, starvation, turns)))
            .collect();
        self.tree.restoring = !self.remembered.is_empty();
        (self.delay, self.next_update, self.waiting_since) =
            (saved.delay, saved.next_update, saved.waiting_since);
        Ok(())
    }

    fn next_wakeup(&self, now: Time) -> Option<Time> {
        [self.next_update, self.delay.next_wakeup(now)]
            .into_iter()
            .flatten()
            .min()
    }
}

impl PolicyTable for FairConfiguration {
    fn uses_progress(&self, _all: &PolicyTables<'_>) -> bool {
        false
    }

    fn build(&self, _all: &PolicyTables<'_>) -> Built {
        Ok(Box::new(Fair::new(self.clone())?))
    }

    fn primitives(
        &self,
        _kind: TaskKind,
        _job: &str,
        _all: &PolicyTables<'_>,
    ) -> Vec<ConfiguredPrimitive> {
        Vec::from_iter(
            self.preemption
                .then_some(("[scheduler.fair] primitive", self.primitive)),
        )
    }

    fn honored_attributes(&self, _all: &PolicyTables<'_>) -> JobAttributes {
        JobAttributes {
            priority: self.priority_weight || self.root.has_fifo(),
            queue: true,
            deadline: false,
        }
    }

    fn queues(&self) -> Option<Vec<&str>> {
        None
    }
}
