//! Natjam: production jobs go first and take what they lack from research jobs.
//!
//! Owns who gets a free slot, and the preemptor with its reclaim lists. Does not own the choice of the
//! research job (`eviction`), of its attempt (the engine's releaser), nor the limits of a list (`reclaim`).

use std::collections::{BTreeMap, BTreeSet};

use rand::SeedableRng;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

use napreduce_engine::{
    Actions, ClusterView, Event, GivingOrder, JobChange, JobId, JobSpec, Offer, QueueShare, Release,
    Scheduler, TaskKind, Time,
};

use crate::natjam::configuration::{NatjamConfiguration, NatjamConfigurationError};
use crate::natjam::eviction::{Evictions, Holding};
use crate::natjam::lines::{Lines, serve_job};
use crate::natjam::reclaim::{ReclaimList, new_requests};
use crate::natjam::runs::Runs;
use crate::serving::Delay;

/// Two classes of jobs; see `docs/schedulers/natjam.md`.
pub struct Natjam {
    configuration: NatjamConfiguration,
    production: Lines<GivingOrder>,
    research: Lines<GivingOrder>,
    /// What each production job has asked for; lists that are not empty.
    lists: BTreeMap<(TaskKind, GivingOrder), ReclaimList>,
    runs: Runs,
    delay: Delay,
    random: Pcg64,
}

/// What cannot be seen in the cluster.
#[derive(Serialize, Deserialize)]
struct Saved {
    lists: Vec<(TaskKind, GivingOrder, ReclaimList)>,
    runs: Runs,
    delay: Delay,
    random: Pcg64,
}

impl Natjam {
    /// A policy as configured.
    ///
    /// # Errors
    /// Names the value that is not allowed.
    pub fn new(configuration: NatjamConfiguration) -> Result<Natjam, NatjamConfigurationError> {
        configuration.check()?;
        Ok(Natjam {
            production: Lines::new(),
            research: Lines::new(),
            lists: BTreeMap::new(),
            runs: Runs::new(configuration.preemptor_interval),
            delay: Delay::new(configuration.delay),
            random: Pcg64::seed_from_u64(configuration.seed),
            configuration,
        })
    }

    /// Gives the offered slot to a production job, else to saved work of research, else to new work of
    /// research.
    fn answer(&mut self, view: &ClusterView<'_>, offer: Offer, actions: &mut Actions) {
        if actions.chooses_kind(view) && self.other_kind_first(offer.kind) {
            return actions.decline("somebody else goes first, with the other kind of task");
        }
        let served = match offer.reserved_for {
            Some(job) => {
                let known = view.job(job);
                known
                    .is_some_and(|known| serve_job(known, &mut self.delay, view, offer, actions))
                    .then_some(job)
            }
            None => self.production.serve_first(&mut self.delay, view, offer, actions),
        };
        if let Some(key) = served.and_then(|job| self.production.key(job)) {
            return self.allocated(view, offer.kind, key);
        }
        let research = served.is_none()
            && offer.reserved_for.is_none()
            && (self.research.serve_saved(&mut self.delay, view, offer, actions)
                || self.research.serve_first(&mut self.delay, view, offer, actions).is_some());
        if served.is_none() && !research {
            actions.decline("no job that may have it can use it");
        }
    }

    /// Where slots are of one kind: whether whoever goes first would use the slot for the other kind of task.
    /// Production goes before research, and saved work of research before new work.
    fn other_kind_first(&self, kind: TaskKind) -> bool {
        let somebody =
            |lines: &Lines<GivingOrder>| TaskKind::ALL.iter().any(|kind| lines.open(*kind).next().is_some());
        if somebody(&self.production) {
            return self.production.other_kind_first(kind);
        }
        match TaskKind::ALL.map(|kind| self.research.has_saved(kind)) {
            [false, true] => kind == TaskKind::Map,
            [true, false] => kind == TaskKind::Reduce,
            _ => self.research.other_kind_first(kind),
        }
    }

    /// A production job got a slot: its oldest request is served.
    fn allocated(&mut self, view: &ClusterView<'_>, kind: TaskKind, job: GivingOrder) {
        // A container that was freed by a reduce may run a map.
        let kinds = if view.shares_slots() { &TaskKind::ALL[..] } else { &[kind] };
        let asked = kinds.iter().map(|kind| (*kind, job)).find(|key| self.lists.contains_key(key));
        let Some(key) = asked else { return };
        if let Some(list) = self.lists.get_mut(&key) {
            list.served();
            if list.is_empty() {
                self.lists.remove(&key);
            }
        }
    }

    /// One run of the preemptor for a kind of slot.
    fn preempt(&mut self, now: Time, kind: TaskKind, view: &ClusterView<'_>, actions: &mut Actions) {
        let limits = self.configuration.limits();
        for (_, list) in self.lists.iter_mut().filter(|((of, _), _)| *of == kind) {
            // The engine kills what is too old: the grace of its request ends with this run.
            list.age(now, &limits);
        }
        self.lists.retain(|_, list| !list.is_empty());
        if view.free_slots(kind) > 0 {
            return;
        }
        let holding = |(_, id): (GivingOrder, JobId)| {
            let job = view.job(id)?;
            let usage = job.holding(kind).saturating_sub(job.requested(kind));
            Some(Holding { job: id, submitted: job.submitted(), usage })
        };
        let mut evictions =
            Evictions::new(self.configuration.job_eviction, self.research.holders(kind).filter_map(holding));
        // The kinds of tasks that can use what its victims give up, and whose requests count together.
        let both = actions.has_both_kinds(view);
        let kinds = || TaskKind::ALL.into_iter().filter(|one| both || *one == kind);
        let claimants: BTreeSet<(GivingOrder, JobId)> =
            kinds().flat_map(|kind| self.production.open(kind)).collect();
        for (key, id) in claimants {
            let Some(job) = view.job(id) else { continue };
            let outstanding =
                kinds().map(|kind| self.lists.get(&(kind, key)).map_or(0, ReclaimList::outstanding)).sum();
            let pending = kinds().map(|kind| job.eligible_count(kind)).sum();
            let mut asked: BTreeMap<JobId, u32> = BTreeMap::new();
            for _ in 0..new_requests(true, pending, outstanding) {
                let Some(from) = evictions.choose(&mut self.random) else { break };
                self.lists.entry((kind, key)).or_default().append(now, from);
                *asked.entry(from).or_default() += 1;
            }
            for (from, count) in asked {
                actions.release(self.wish(from, kind, count, id, pending));
            }
        }
    }

    fn wish(&self, from: JobId, kind: TaskKind, count: u32, job: JobId, pending: u32) -> Release {
        Release {
            job: from,
            kind,
            count,
            eviction: self.configuration.task_eviction,
            primitive: self.configuration.primitive,
            grace: self.configuration.grace(),
            reason: format!("production {job} waits for {pending} {kind} slots and none is free"),
            beneficiary: Some(job),
        }
    }

    /// Whether a run could do something now or later.
    fn has_work(&self, kinds: &[TaskKind], view: &ClusterView<'_>) -> bool {
        let takes = |kind| view.shares_slots() || self.configuration.takes(kind);
        let waits = |kind: &TaskKind| takes(*kind) && self.production.open(*kind).next().is_some();
        !self.lists.is_empty() || kinds.iter().any(waits)
    }
}

impl Scheduler for Natjam {
    fn on_event(&mut self, _now: Time, _event: &Event, _view: &ClusterView<'_>) {}

    fn job_changed(&mut self, _now: Time, job: JobId, view: &ClusterView<'_>) {
        let Some(known) = view.job(job) else {
            // By its number: after a restore its line may be gone before it was known.
            self.lists.retain(|(_, (_, _, of)), _| *of != job);
            self.production.remove(job);
            self.research.remove(job);
            return self.delay.forget(job);
        };
        let production = self.configuration.is_production(known.spec());
        let class = if production { &mut self.production } else { &mut self.research };
        class.update(known, known.giving_order());
    }

    fn schedule(&mut self, now: Time, view: &ClusterView<'_>, actions: &mut Actions) {
        if let Some(offer) = actions.offer() {
            return self.answer(view, offer, actions);
        }
        let has_work = self.has_work(actions.kinds(), view);
        if self.runs.is_due(now, has_work) {
            for &kind in actions.kinds() {
                if self.configuration.takes(kind) {
                    self.preempt(now, kind, view, actions);
                }
            }
        }
    }

    fn rank(&self, spec: &JobSpec) -> i128 {
        let research = i128::from(!self.configuration.is_production(spec));
        (research << 64) - i128::from(spec.priority)
    }

    fn can_change(&self, _change: &JobChange) -> Result<(), String> {
        Ok(())
    }

    fn queues(&self, view: &ClusterView<'_>) -> Option<Vec<QueueShare>> {
        Some(self.configuration.listed_queues(view))
    }

    fn save(&self) -> Option<String> {
        let lists = self.lists.iter().map(|((kind, job), list)| (*kind, *job, list.clone()));
        let saved = Saved {
            lists: lists.collect(),
            runs: self.runs.clone(),
            delay: self.delay.clone(),
            random: self.random.clone(),
        };
        Some(serde_json::to_string(&saved).expect("plain data is text"))
    }

    fn restore(&mut self, saved: Option<&str>) -> Result<(), String> {
        let saved = saved.ok_or("what Natjam remembers is not said")?;
        let saved: Saved = serde_json::from_str(saved).map_err(|error| format!("Natjam: {error}"))?;
        self.lists = saved.lists.into_iter().map(|(kind, job, list)| ((kind, job), list)).collect();
        (self.runs, self.delay, self.random) = (saved.runs, saved.delay, saved.random);
        Ok(())
    }

    fn next_wakeup(&self, now: Time) -> Option<Time> {
        [self.runs.next(), self.delay.next_wakeup(now)].into_iter().flatten().min()
    }
}
