//! The jobs of one class in policy order, indexed by what they can do with a slot: launch, restore a
//! checkpoint, or give one up.

use napreduce_engine::{
    Actions, ByKind, ClusterView, Job, JobId, Offer, SortedMap, SortedSet, Start, TaskKind,
    is_other_first,
};

use crate::serving::{Accepts, Delay};

/// Limit on the jobs whose checkpoints are examined for one offer before a checkpoint migrates.
const EXAMINED_MAX: usize = 16;

/// The key and id of a job.
type RankKey<K> = (K, JobId);

/// The jobs of one class.
#[derive(Debug)]
pub(super) struct JobIndex<K> {
    entries: SortedMap<JobId, (K, ByKind<Flags>)>,
    /// Jobs with launchable tasks.
    open: ByKind<SortedSet<RankKey<K>>>,
    /// Jobs with checkpoints to restore.
    saved: ByKind<SortedSet<RankKey<K>>>,
    /// Jobs that hold a slot.
    holders: ByKind<SortedSet<RankKey<K>>>,
    /// Number of jobs with suspended attempts and nothing to launch.
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
    fn new(job: &Job, kind: TaskKind) -> Flags {
        let open = job.eligible_count(kind) > 0;
        Flags {
            open,
            saved: open && job.checkpointed(kind).next().is_some(),
            holds: job.holding(kind) > 0 && !job.is_master(),
            only_suspended: !open && job.wants(kind),
        }
    }
}

impl<K: Ord + Copy> JobIndex<K> {
    pub(super) fn new() -> JobIndex<K> {
        JobIndex {
            entries: SortedMap::new(),
            open: ByKind {
                map: SortedSet::new(),
                reduce: SortedSet::new(),
            },
            saved: ByKind {
                map: SortedSet::new(),
                reduce: SortedSet::new(),
            },
            holders: ByKind {
                map: SortedSet::new(),
                reduce: SortedSet::new(),
            },
            only_suspended: ByKind::default(),
        }
    }

    /// Adds a job, or updates its key and entries.
    pub(super) fn update(&mut self, job: &Job, key: K) {
        let flags = ByKind {
            map: Flags::new(job, TaskKind::Map),
            reduce: Flags::new(job, TaskKind::Reduce),
        };
        let before = self.entries.insert(job.id(), (key, flags));
        if before.is_some_and(|(before, were)| before == key && were == flags) {
            return;
        }
        if let Some((before, were)) = before {
            for kind in TaskKind::ALL {
                self.set_entries((before, job.id()), kind, were[kind], false);
            }
        }
        for kind in TaskKind::ALL {
            self.set_entries((key, job.id()), kind, flags[kind], true);
        }
    }

    pub(super) fn remove(&mut self, job: JobId) {
        if let Some((key, flags)) = self.entries.remove(&job) {
            for kind in TaskKind::ALL {
                self.set_entries((key, job), kind, flags[kind], false);
            }
        }
    }

    fn set_entries(&mut self, key: RankKey<K>, kind: TaskKind, flags: Flags, present: bool) {
        let sets = [
            (&mut self.open[kind], flags.open),
            (&mut self.saved[kind], flags.saved),
            (&mut self.holders[kind], flags.holds),
        ];
        for (set, _) in sets.into_iter().filter(|(_, is_member)| *is_member) {
            if present {
                set.insert(key)
            } else {
                set.remove(&key)
            };
        }
        let count = u32::from(flags.only_suspended);
        let only = &mut self.only_suspended[kind];
        *only = if present {
            *only + count
        } else {
            *only - count
        };
    }

    pub(super) fn key(&self, job: JobId) -> Option<K> {
        self.entries.get(&job).map(|(key, _)| *key)
    }

    pub(super) fn jobs(&self) -> impl Iterator<Item = JobId> + '_ {
        self.entries.keys().copied()
    }

    /// Returns the jobs with launchable tasks, in order.
    pub(super) fn open(&self, kind: TaskKind) -> impl DoubleEndedIterator<Item = RankKey<K>> + '_ {
        self.open[kind].iter().copied()
    }

    /// With slots shared by both kinds: whether the first job with launchable tasks would use a slot for the
    /// other kind. Within a job, maps go first.
    pub(super) fn other_kind_first(&self, kind: TaskKind) -> bool {
        is_other_first(kind, |kind| self.open[kind].first())
    }

    /// Whether a job has checkpoints to restore.
    pub(super) fn has_saved(&self, kind: TaskKind) -> bool {
        !self.saved[kind].is_empty()
    }

    /// Returns the jobs that hold a slot, in order.
    pub(super) fn holders(
        &self,
        kind: TaskKind,
    ) -> impl DoubleEndedIterator<Item = RankKey<K>> + '_ {
        self.holders[kind].iter().copied()
    }

    /// Returns the jobs with suspended attempts on the offered worker.
    pub(super) fn suspended_here(
        &self,
        view: &ClusterView<'_>,
        offer: Offer,
    ) -> SortedSet<RankKey<K>> {
        if !view.has_suspended(offer.kind, offer.worker) {
            return SortedSet::new();
        }
        let attempts = view
            .worker(offer.worker)
            .into_iter()
            .flat_map(|worker| worker.attempts());
        let mut jobs: Vec<JobId> = attempts.map(|attempt| attempt.task.job).collect();
        jobs.dedup();
        let here = |job: &JobId| {
            view.job(*job)
                .is_some_and(|job| job.suspended_on(offer.kind, offer.worker).is_some())
        };
        jobs.into_iter()
            .filter(here)
            .filter_map(|job| Some((self.key(job)?, job)))
            .collect()
    }

    /// Whether a job has unmet demand.
    pub(super) fn has_demand(&self, kind: TaskKind) -> bool {
        !self.open[kind].is_empty() || self.only_suspended[kind] > 0
    }

    /// Resumes or restores an attempt of the first job that can: suspended attempts on this worker first,
    /// then checkpoints of this worker, then other checkpoints.
    pub(super) fn serve_saved(
        &self,
        delay: &mut Delay,
        view: &ClusterView<'_>,
        offer: Offer,
        actions: &mut Actions,
    ) -> bool {
        let here = self.suspended_here(view, offer);
        let known = |(_, job): &RankKey<K>| view.job(*job);
        if let Some(attempt) = here
            .iter()
            .filter_map(known)
            .find_map(|job| job.suspended_on(offer.kind, offer.worker))
        {
            actions.resume(attempt);
            return true;
        }
        let saved = || {
            self.saved[offer.kind]
                .iter()
                .filter_map(known)
                .take(EXAMINED_MAX)
        };
        saved().any(|job| restore(job, offer, Near::Here, delay, actions))
            || saved().any(|job| migrate(job, delay, view, offer, actions))
    }

    /// Assigns the slot to the first job in order that can use it.
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

/// Assigns the slot to a job: suspended attempts on this worker, then checkpoints, then new tasks.
pub(super) fn serve_job(
    job: &Job,
    delay: &mut Delay,
    view: &ClusterView<'_>,
    offer: Offer,
    actions: &mut Actions,
) -> bool {
    if job.suspended_on(offer.kind, offer.worker).is_none()
        && (restore(job, offer, Near::Here, delay, actions)
            || migrate(job, delay, view, offer, actions))
    {
        return true;
    }
    delay.serve(view.now(), job, offer, actions)
}

/// The location of a checkpoint.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Near {
    Here,
    OnRack,
    Anywhere,
}

/// Restores a checkpoint from another worker, unless the job waits for that worker.
fn migrate(
    job: &Job,
    delay: &mut Delay,
    view: &ClusterView<'_>,
    offer: Offer,
    actions: &mut Actions,
) -> bool {
    let accepted = delay.accepts(view.now(), job, offer);
    accepted != Accepts::Nothing && restore(job, offer, Near::OnRack, delay, actions)
        || accepted == Accepts::Anything && restore(job, offer, Near::Anywhere, delay, actions)
}

/// Restores a checkpoint, the oldest first.
fn restore(job: &Job, offer: Offer, near: Near, delay: &mut Delay, actions: &mut Actions) -> bool {
    let Offer { worker, kind, .. } = offer;
    let saved = |task: &_| job.start_of(*task) != Start::Fresh && !job.avoids(*task, worker);
    let task = match near {
        Near::Here => job.next_local(kind, worker).filter(saved),
        Near::OnRack => job.next_on_rack(kind, worker).filter(saved),
        Near::Anywhere => job
            .checkpointed(kind)
            .map(|(task, ..)| task)
            .find(|task| !job.avoids(*task, worker)),
    };
    let Some(task) = task else { return false };
    actions.launch(task, worker, job.start_of(task));
    delay.served(job.id(), kind);
    true
}
