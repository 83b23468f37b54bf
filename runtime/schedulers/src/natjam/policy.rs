//! Natjam: production jobs are served first, and preempt research jobs when no slot is free.

use rand::SeedableRng;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

use napreduce_engine::{
    Actions, Claims, ClusterView, DefaultOrder, Event, Job, JobChange, JobId, JobSpec, Offer,
    PolicyRefusal, QueueShare, Release, Scheduler, SortedMap, SortedSet, TaskKind, Time,
};

use crate::natjam::configuration::{NatjamConfiguration, NatjamConfigurationError};
use crate::natjam::eviction::{Evictions, Holding};
use crate::natjam::job_index::{JobIndex, serve_job};
use crate::natjam::places::Places;
use crate::natjam::reclaim::{ReclaimList, Runs, new_requests};
use crate::serving::Delay;
use crate::tables::{Built, ConfiguredPrimitive, PolicyTable, PolicyTables};

/// Two classes of jobs; see `docs/schedulers/natjam.md`.
pub struct Natjam {
    configuration: NatjamConfiguration,
    production: JobIndex<DefaultOrder>,
    research: JobIndex<DefaultOrder>,
    /// Outstanding requests per production job; no empty lists.
    lists: SortedMap<(TaskKind, DefaultOrder), ReclaimList>,
    runs: Runs,
    delay: Delay,
    random: Pcg64,
}

/// The state that cannot be derived from the cluster view.
#[derive(Serialize, Deserialize)]
struct Saved {
    lists: Vec<(TaskKind, DefaultOrder, ReclaimList)>,
    runs: Runs,
    delay: Delay,
    random: Pcg64,
}

impl Natjam {
    /// Creates the policy.
    ///
    /// # Errors
    /// Fails if a value is invalid.
    pub fn new(configuration: NatjamConfiguration) -> Result<Natjam, NatjamConfigurationError> {
        configuration.check()?;
        Ok(Natjam {
            production: JobIndex::new(),
            research: JobIndex::new(),
            lists: SortedMap::new(),
            runs: Runs::new(configuration.preemptor_interval),
            delay: Delay::new(configuration.delay),
            random: Pcg64::seed_from_u64(configuration.seed),
            configuration,
        })
    }

    /// Assigns the offered slot: to a production job, else to saved work of research jobs, else to their new
    /// tasks.
    fn assign(&mut self, view: &ClusterView<'_>, offer: Offer, actions: &mut Actions) {
        if actions.chooses_kind(view) && self.other_kind_first(offer.kind) {
            return actions.decline("a task of the other kind goes first");
        }
        let served = match offer.reserved_for {
            Some(job) => {
                let known = view.job(job);
                known
                    .is_some_and(|known| serve_job(known, &mut self.delay, view, offer, actions))
                    .then_some(job)
            }
            None => self
                .production
                .serve_first(&mut self.delay, view, offer, actions),
        };
        if let Some(key) = served.and_then(|job| self.production.key(job)) {
            return self.record_allocation(view, offer.kind, key);
        }
        let research = served.is_none()
            && offer.reserved_for.is_none()
            && (self
                .research
                .serve_saved(&mut self.delay, view, offer, actions)
                || self
                    .research
                    .serve_first(&mut self.delay, view, offer, actions)
                    .is_some());
        if served.is_none() && !research {
            actions.decline("no eligible job can use the slot");
        }
    }

    /// With slots shared by both kinds: whether the first job would use the slot for the other kind.
    /// Production precedes research; saved work of research precedes new tasks.
    fn other_kind_first(&self, kind: TaskKind) -> bool {
        let has_tasks = |jobs: &JobIndex<DefaultOrder>| {
            TaskKind::ALL
                .iter()
                .any(|kind| jobs.open(*kind).next().is_some())
        };
        if has_tasks(&self.production) {
            return self.production.other_kind_first(kind);
        }
        match TaskKind::ALL.map(|kind| self.research.has_saved(kind)) {
            [false, true] => kind == TaskKind::Map,
            [true, false] => kind == TaskKind::Reduce,
            _ => self.research.other_kind_first(kind),
        }
    }

    /// Removes the oldest request of a production job that got a slot.
    fn record_allocation(&mut self, view: &ClusterView<'_>, kind: TaskKind, job: DefaultOrder) {
        // A slot released by a reduce may run a map.
        let kinds = if view.shares_slots() {
            &TaskKind::ALL[..]
        } else {
            &[kind]
        };
        let list = kinds
            .iter()
            .map(|kind| (*kind, job))
            .find(|key| self.lists.contains_key(key));
        let Some(key) = list else { return };
        if let Some(list) = self.lists.get_mut(&key) {
            list.remove_oldest();
            if list.is_empty() {
                self.lists.remove(&key);
            }
        }
    }

    /// Runs the preemptor for one slot kind.
    fn preempt(
        &mut self,
        now: Time,
        kind: TaskKind,
        view: &ClusterView<'_>,
        actions: &mut Actions,
    ) {
        let limits = self.configuration.limits();
        self.lists.retain(|(of, _), list| {
            if *of == kind {
                // The engine kills expired victims: the grace period of their request ends with this run.
                list.age(now, &limits);
            }
            !list.is_empty()
        });
        if view.free_slots(kind) > 0 {
            return;
        }
        // The task kinds that can use the victims' slots; their requests count together.
        let both = actions.has_both_kinds(view);
        let kinds = || TaskKind::ALL.into_iter().filter(|one| both || *one == kind);
        let claimants: SortedSet<(DefaultOrder, JobId)> = kinds()
            .flat_map(|kind| self.production.open(kind))
            .collect();
        let usable_for: Vec<TaskKind> = kinds().collect();
        let mut claims = Claims::new(*view, &usable_for);
        let mut places = Places::new(*view, kind);
        for (key, id) in claimants {
            let Some(job) = view.job(id) else { continue };
            let outstanding = kinds()
                .map(|kind| {
                    self.lists
                        .get(&(kind, key))
                        .map_or(0, ReclaimList::outstanding)
                })
                .sum();
            let pending = kinds().map(|kind| job.eligible_count(kind)).sum();
            let mut requests: SortedMap<JobId, u32> = SortedMap::new();
            let mut left = new_requests(true, pending, outstanding);
            if left == 0 {
                continue;
            }
            let holding = |(_, job): (DefaultOrder, JobId)| {
                let submitted = view.job(job)?.submitted();
                Some(Holding {
                    job,
                    submitted,
                    usage: places.held(job),
                })
            };
            let research = self.research.holders(kind).filter_map(holding);
            let mut evictions = Evictions::new(self.configuration.job_eviction, research);
            while left > 0 {
                let Some(from) = evictions.choose(&mut self.random) else {
                    break;
                };
                if !places.take_for(from, id, &mut claims) {
                    continue;
                }
                left -= 1;
                self.lists.get_or_default((kind, key)).append(now, from);
                *requests.get_or_default(from) += 1;
            }
            for (from, count) in requests {
                actions.release(self.release(from, kind, count, id, pending));
            }
        }
    }

    fn release(
        &self,
        from: JobId,
        kind: TaskKind,
        count: u32,
        job: JobId,
        pending: u32,
    ) -> Release {
        Release {
            job: from,
            kind,
            count,
            eviction: self.configuration.task_eviction,
            primitive: self.configuration.primitive,
            grace: self.configuration.grace(),
            reason: format!("no {kind} slot is free, and production {job} waits for {pending}"),
            beneficiary: Some(job),
        }
    }

    /// Whether a run can do anything now or later.
    fn has_work(&self, kinds: &[TaskKind], view: &ClusterView<'_>) -> bool {
        let preempts = |kind| view.shares_slots() || self.configuration.preempts(kind);
        let waits =
            |kind: &TaskKind| preempts(*kind) && self.production.open(*kind).next().is_some();
        !self.lists.is_empty() || kinds.iter().any(waits)
    }
}

impl Scheduler for Natjam {
    fn on_event(&mut self, _now: Time, _event: &Event, _view: &ClusterView<'_>) {}

    fn job_changed(&mut self, _now: Time, job: JobId, view: &ClusterView<'_>) {
        let Some(known) = view.job(job) else {
            // By id: after a restore the job may end before it is reported.
            self.lists.retain(|(_, (_, _, of)), _| *of != job);
            self.production.remove(job);
            self.research.remove(job);
            return self.delay.forget(job);
        };
        let production = self.configuration.is_production(known.spec());
        let class = if production {
            &mut self.production
        } else {
            &mut self.research
        };
        class.update(known, known.default_order());
    }

    fn schedule(&mut self, now: Time, view: &ClusterView<'_>, actions: &mut Actions) {
        if let Some(offer) = actions.offer() {
            return self.assign(view, offer, actions);
        }
        let has_work = self.has_work(actions.kinds(), view);
        if self.runs.is_due(now, has_work) {
            for &kind in actions.kinds() {
                if self.configuration.preempts(kind) {
                    self.preempt(now, kind, view, actions);
                }
            }
        }
    }

    fn order(&self, kind: TaskKind, _view: &ClusterView<'_>) -> Vec<JobId> {
        self.production
            .open(kind)
            .chain(self.research.open(kind))
            .map(|(_, job)| job)
            .collect()
    }

    fn is_before(&self, _kind: TaskKind, one: &Job, other: &Job) -> bool {
        let order = |job: &Job| {
            (
                !self.configuration.is_production(job.spec()),
                job.default_order(),
            )
        };
        order(one) < order(other)
    }

    fn rank(&self, spec: &JobSpec) -> i128 {
        let research = i128::from(!self.configuration.is_production(spec));
        (research << 64) - i128::from(spec.priority)
    }

    fn can_change(&self, _change: &JobChange) -> Result<(), PolicyRefusal> {
        Ok(())
    }

    fn queues(&self, view: &ClusterView<'_>) -> Option<Vec<QueueShare>> {
        Some(self.configuration.listed_queues(view))
    }

    fn save(&self) -> Option<String> {
        let lists = self
            .lists
            .iter()
            .map(|((kind, job), list)| (*kind, *job, list.clone()));
        let saved = Saved {
            lists: lists.collect(),
            runs: self.runs.clone(),
            delay: self.delay.clone(),
            random: self.random.clone(),
        };
        Some(serde_json::to_string(&saved).expect("plain data serializes"))
    }

    fn restore(&mut self, saved: Option<&str>) -> Result<(), String> {
        let saved = saved.ok_or("natjam: the snapshot has no saved state")?;
        let saved: Saved = serde_json::from_str(saved)
            .map_err(|error| format!("natjam: invalid saved state: {error}"))?;
        self.lists = saved
            .lists
            .into_iter()
            .map(|(kind, job, list)| ((kind, job), list))
            .collect();
        (self.runs, self.delay, self.random) = (saved.runs, saved.delay, saved.random);
        Ok(())
    }

    fn next_wakeup(&self, now: Time) -> Option<Time> {
        [self.runs.next(), self.delay.next_wakeup(now)]
            .into_iter()
            .flatten()
            .min()
    }
}

impl PolicyTable for NatjamConfiguration {
    fn build(&self, _all: &PolicyTables<'_>) -> Built {
        Ok(Box::new(Natjam::new(self.clone())?))
    }

    fn primitives(
        &self,
        kind: TaskKind,
        _job: &str,
        _all: &PolicyTables<'_>,
    ) -> Vec<ConfiguredPrimitive> {
        Vec::from_iter(
            self.preempts(kind)
                .then_some(("[scheduler.natjam] primitive", self.primitive)),
        )
    }

    /// Every queue that is not production is research.
    fn queues(&self) -> Option<Vec<&str>> {
        None
    }
}
