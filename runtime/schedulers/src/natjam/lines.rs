//! Jobs in an order of the policy's, kept as they change: who could use a slot, who has saved work, who holds
//! something.
//!
//! Owns the ordered sets and the serving of saved work before new work. Does not own the order.

use std::collections::{BTreeMap, BTreeSet};

use napreduce_engine::{Actions, ByKind, ClusterView, Job, JobId, Offer, Start, TaskKind, is_other_first};

use crate::serving::{Delay, Takes};

/// How many jobs with saved work are asked whether it is on the worker that offers a slot, before any of it
/// moves there.
const ASKED_MAX: usize = 16;

/// A job under its key.
type RankKey<K> = (K, JobId);

/// The jobs of one class.
#[derive(Debug)]
pub(super) struct Lines<K> {
    places: BTreeMap<JobId, (K, ByKind<Flags>)>,
    /// Those that could launch something.
    open: ByKind<BTreeSet<RankKey<K>>>,
    /// Those that could launch something from a checkpoint.
    saved: ByKind<BTreeSet<RankKey<K>>>,
    /// Those that hold a slot.
    holders: ByKind<BTreeSet<RankKey<K>>>,
    /// How many have something suspended and nothing to launch.
    only_suspended: ByKind<u32>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Flags {
    open: bool,
    saved: bool,
    holds: bool,
    only_suspended: bool,
}

impl Flags {
    fn of(job: &Job, kind: TaskKind) -> Flags {
        let open = job.eligible_count(kind) > 0;
        Flags {
            open,
            saved: open && job.checkpointed(kind).next().is_some(),
            holds: job.holding(kind) > 0 && !job.is_master(),
            only_suspended: !open && job.wants(kind),
        }
    }
}

impl<K: Ord + Copy> Lines<K> {
    pub(super) fn new() -> Lines<K> {
        Lines {
            places: BTreeMap::new(),
            open: ByKind { map: BTreeSet::new(), reduce: BTreeSet::new() },
            saved: ByKind { map: BTreeSet::new(), reduce: BTreeSet::new() },
            holders: ByKind { map: BTreeSet::new(), reduce: BTreeSet::new() },
            only_suspended: ByKind::default(),
        }
    }

    /// A job is new or changed; its key may be another one.
    pub(super) fn update(&mut self, job: &Job, key: K) {
        let flags = ByKind { map: Flags::of(job, TaskKind::Map), reduce: Flags::of(job, TaskKind::Reduce) };
        let before = self.places.insert(job.id(), (key, flags));
        if before.is_some_and(|(before, were)| before == key && were == flags) {
            return;
        }
        if let Some((before, were)) = before {
            TaskKind::ALL.into_iter().for_each(|kind| self.list((before, job.id()), kind, were[kind], false));
        }
        TaskKind::ALL.into_iter().for_each(|kind| self.list((key, job.id()), kind, flags[kind], true));
    }

    /// A job is over.
    pub(super) fn remove(&mut self, job: JobId) {
        if let Some((key, flags)) = self.places.remove(&job) {
            TaskKind::ALL.into_iter().for_each(|kind| self.list((key, job), kind, flags[kind], false));
        }
    }

    fn list(&mut self, place: RankKey<K>, kind: TaskKind, flags: Flags, there: bool) {
        let lists = [
            (&mut self.open[kind], flags.open),
            (&mut self.saved[kind], flags.saved),
            (&mut self.holders[kind], flags.holds),
        ];
        for (list, _) in lists.into_iter().filter(|(_, listed)| *listed) {
            if there {
                list.insert(place)
            } else {
                list.remove(&place)
            };
        }
        let count = u32::from(flags.only_suspended);
        let only = &mut self.only_suspended[kind];
        *only = if there { *only + count } else { *only - count };
    }

    pub(super) fn key(&self, job: JobId) -> Option<K> {
        self.places.get(&job).map(|(key, _)| *key)
    }

    pub(super) fn jobs(&self) -> impl Iterator<Item = JobId> + '_ {
        self.places.keys().copied()
    }

    /// Those that could launch something, first in order first.
    pub(super) fn open(&self, kind: TaskKind) -> impl DoubleEndedIterator<Item = RankKey<K>> + '_ {
        self.open[kind].iter().copied()
    }

    /// Where slots are of one kind: whether the first that could launch something would launch the other kind
    /// with it. Of one job maps go first.
    pub(super) fn other_kind_first(&self, kind: TaskKind) -> bool {
        is_other_first(kind, |kind| self.open[kind].first())
    }

    /// Whether a job has saved work of a kind.
    pub(super) fn has_saved(&self, kind: TaskKind) -> bool {
        !self.saved[kind].is_empty()
    }

    /// Those that hold a slot.
    pub(super) fn holders(&self, kind: TaskKind) -> impl DoubleEndedIterator<Item = RankKey<K>> + '_ {
        self.holders[kind].iter().copied()
    }

    /// Those with something suspended where a slot is offered.
    pub(super) fn suspended_here(&self, view: &ClusterView<'_>, offer: Offer) -> BTreeSet<RankKey<K>> {
        if !view.has_suspended(offer.kind, offer.worker) {
            return BTreeSet::new();
        }
        let attempts = view.worker(offer.worker).into_iter().flat_map(|worker| worker.attempts());
        let mut jobs: Vec<JobId> = attempts.map(|attempt| attempt.task.job).collect();
        jobs.dedup();
        let here = |job: &JobId| {
            view.job(*job).is_some_and(|job| job.suspended_on(offer.kind, offer.worker).is_some())
        };
        jobs.into_iter().filter(here).filter_map(|job| Some((self.key(job)?, job))).collect()
    }

    /// Whether somebody would have to be offered a slot of a kind on another worker.
    pub(super) fn somebody_waits(&self, kind: TaskKind) -> bool {
        !self.open[kind].is_empty() || self.only_suspended[kind] > 0
    }

    /// Resumes or restores something where the slot is offered, of the first job in order that can: what is
    /// suspended here, what was saved here, what was saved elsewhere.
    pub(super) fn serve_saved(
        &self,
        delay: &mut Delay,
        view: &ClusterView<'_>,
        offer: Offer,
        actions: &mut Actions,
    ) -> bool {
        let here = self.suspended_here(view, offer);
        let known = |(_, job): &RankKey<K>| view.job(*job);
        if let Some(attempt) =
            here.iter().filter_map(known).find_map(|job| job.suspended_on(offer.kind, offer.worker))
        {
            actions.resume(attempt);
            return true;
        }
        let saved = || self.saved[offer.kind].iter().filter_map(known).take(ASKED_MAX);
        saved().any(|job| restore(job, offer, Near::Here, delay, actions))
            || saved().any(|job| migrate(job, delay, view, offer, actions))
    }

    /// Gives the slot to the first job in order that can use it, whatever it does with it.
    pub(super) fn serve_first(
        &self,
        delay: &mut Delay,
        view: &ClusterView<'_>,
        offer: Offer,
        actions: &mut Actions,
    ) -> Option<JobId> {
        let here = self.suspended_here(view, offer);
        let mut resuming = here.iter().peekable();
        let mut launching = self.open[offer.kind].iter().peekable();
        loop {
            let first = match (launching.peek(), resuming.peek()) {
                (Some(launch), Some(resume)) if resume <= launch => resuming.next(),
                (None, _) => resuming.next(),
                (Some(_), _) => launching.next(),
            };
            let (_, id) = *first?;
            let Some(job) = view.job(id) else { continue };
            if serve_job(job, delay, view, offer, actions) {
                return Some(id);
            }
        }
    }
}

/// Gives the slot to a job: what is suspended here, what was saved, here if possible, and then new work.
pub(super) fn serve_job(
    job: &Job,
    delay: &mut Delay,
    view: &ClusterView<'_>,
    offer: Offer,
    actions: &mut Actions,
) -> bool {
    if job.suspended_on(offer.kind, offer.worker).is_none()
        && (restore(job, offer, Near::Here, delay, actions) || migrate(job, delay, view, offer, actions))
    {
        return true;
    }
    delay.serve(view.now(), job, offer, actions)
}

/// Where saved work may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Near {
    Here,
    OnRack,
    Anywhere,
}

/// Launches a task of a job from its checkpoint, wherever that was written, unless the job rather waits for
/// that place.
fn migrate(
    job: &Job,
    delay: &mut Delay,
    view: &ClusterView<'_>,
    offer: Offer,
    actions: &mut Actions,
) -> bool {
    let takes = delay.takes(view.now(), job, offer);
    takes != Takes::Nothing && restore(job, offer, Near::OnRack, delay, actions)
        || takes == Takes::Anything && restore(job, offer, Near::Anywhere, delay, actions)
}

/// Launches a task of a job from its checkpoint, the oldest first.
fn restore(job: &Job, offer: Offer, near: Near, delay: &mut Delay, actions: &mut Actions) -> bool {
    let Offer { worker, kind, .. } = offer;
    let saved = |task: &_| job.start_of(*task) != Start::Fresh && !job.avoids(*task, worker);
    let task = match near {
        Near::Here => job.next_local(kind, worker).filter(saved),
        Near::OnRack => job.next_on_rack(kind, worker).filter(saved),
        Near::Anywhere => {
            job.checkpointed(kind).map(|(task, ..)| task).find(|task| !job.avoids(*task, worker))
        }
    };
    let Some(task) = task else { return false };
    actions.launch(task, worker, job.start_of(task));
    delay.served(job.id(), kind);
    true
}
