//! Natjam-R: one queue in order of urgency; the least urgent give way to the most urgent.
//!
//! Owns who gets a free slot, the runs that take slots, and the projection of remaining times. Does not own
//! the keys and the pairs that agree (`urgency`), nor the choice of a job's attempt (the engine's releaser).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use napreduce_engine::{
    Actions, ClusterView, Event, Job, JobId, JobSpec, Offer, Release, Scheduler, Span, TaskKind, Time,
};

use crate::natjam::admission::{DeadlineAdmission, Lateness};
use crate::natjam::configuration::{NatjamConfigurationError, NatjamRConfiguration};
use crate::natjam::expected::{check_known, check_new, is_known};
use crate::natjam::lines::{Lines, serve_job};
use crate::natjam::runs::Runs;
use crate::natjam::urgency::{Urgency, UrgencyKey};
use crate::serving::Delay;

/// More urgent, then submitted earlier; then the smaller id.
type Key = (Urgency, Time);

/// One queue by deadline or laxity; see `docs/schedulers/natjam.md`.
pub struct NatjamR {
    configuration: NatjamRConfiguration,
    by: UrgencyKey,
    queue: Lines<Key>,
    /// How long each job has held a slot; by laxity only.
    worked: BTreeMap<JobId, Worked>,
    /// The keys that were saved of jobs that were not named again yet.
    remembered: BTreeMap<JobId, Urgency>,
    runs: Runs,
    delay: Delay,
}

/// For how long a job has held at least one slot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Worked {
    before: Span,
    since: Option<Time>,
}

impl Worked {
    fn until(&self, now: Time) -> Span {
        self.before + self.since.map_or(Span(0), |since| now.since(since))
    }

    fn update(&mut self, now: Time, holds: bool) {
        if holds {
            self.since.get_or_insert(now);
        } else {
            *self = Worked { before: self.until(now), since: None };
        }
    }
}

/// What cannot be seen in the cluster.
#[derive(Serialize, Deserialize)]
struct Saved {
    worked: Vec<(JobId, Worked)>,
    keys: Vec<(JobId, Urgency)>,
    runs: Runs,
    delay: Delay,
}

impl NatjamR {
    /// A policy as configured.
    ///
    /// # Errors
    /// Names the value that is not allowed; a pair of eviction and selection that goes by two keys is not.
    pub fn new(configuration: NatjamRConfiguration) -> Result<NatjamR, NatjamConfigurationError> {
        let by = configuration.check()?;
        Ok(NatjamR {
            by,
            queue: Lines::new(),
            worked: BTreeMap::new(),
            remembered: BTreeMap::new(),
            runs: Runs::new(configuration.interval),
            delay: Delay::new(configuration.delay),
            configuration,
        })
    }

    fn urgency(&self, now: Time, job: &Job, view: &ClusterView<'_>) -> Urgency {
        let deadline = job.spec().deadline;
        match self.by {
            UrgencyKey::Deadline => Urgency::of_deadline(deadline),
            UrgencyKey::Laxity => {
                let worked = self.worked.get(&job.id()).copied().unwrap_or_default().until(now);
                Urgency::of_laxity(deadline, now, projected(job, worked, view))
            }
        }
    }

    fn answer(&mut self, view: &ClusterView<'_>, offer: Offer, actions: &mut Actions) {
        if actions.chooses_kind(view) && self.queue.other_kind_first(offer.kind) {
            return actions.decline("a job that is more urgent goes first, with the other kind of task");
        }
        let served = match offer.reserved_for {
            Some(job) => {
                view.job(job).is_some_and(|job| serve_job(job, &mut self.delay, view, offer, actions))
            }
            None => self.queue.serve_first(&mut self.delay, view, offer, actions).is_some(),
        };
        if !served {
            actions.decline("no job that may have it can use it");
        }
    }

    /// Finds all laxities anew.
    fn order_anew(&mut self, now: Time, view: &ClusterView<'_>) {
        let jobs: Vec<&Job> = self.queue.jobs().filter_map(|job| view.job(job)).collect();
        for job in jobs {
            let key = (self.urgency(now, job, view), job.submitted());
            self.queue.update(job, key);
        }
    }

    /// Takes slots for the most urgent jobs that wait, from the least urgent that hold any.
    fn preempt(&self, kind: TaskKind, view: &ClusterView<'_>, actions: &mut Actions) {
        let both = actions.has_both_kinds(view);
        let kinds = || TaskKind::ALL.into_iter().filter(|one| both || *one == kind);
        let waits = |id: JobId| {
            view.job(id).map_or(0, |job| {
                let promised: u32 = kinds().map(|kind| job.promised(kind)).sum();
                kinds().map(|kind| job.eligible_count(kind)).sum::<u32>().saturating_sub(promised)
            })
        };
        let can_give =
            |id: JobId| view.job(id).map_or(0, |job| job.holding(kind).saturating_sub(job.requested(kind)));
        let open: BTreeSet<(Key, JobId)> = kinds().flat_map(|kind| self.queue.open(kind)).collect();
        let mut claimants = open.into_iter().filter(|(_, id)| waits(*id) > 0);
        let mut victims = self.queue.holders(kind).rev().filter(|(_, id)| can_give(*id) > 0);
        let (mut claimant, mut victim) = (claimants.next(), victims.next());
        let (mut claimed, mut given) = (0, 0);
        for _ in 0..self.configuration.per_run {
            let (Some((key, job)), Some((urgent, from))) = (claimant, victim) else { return };
            let behind = (urgent, from) > (key, job);
            if !behind || !urgent.0.gives_way_to(key.0, self.configuration.laxity_margin) {
                return;
            }
            actions.release(self.wish(from, kind, job));
            (claimed, given) = (claimed + 1, given + 1);
            if claimed == waits(job) {
                (claimant, claimed) = (claimants.next(), 0);
            }
            if given == can_give(from) {
                (victim, given) = (victims.next(), 0);
            }
        }
    }

    fn wish(&self, from: JobId, kind: TaskKind, job: JobId) -> Release {
        let what = match self.by {
            UrgencyKey::Deadline => "an earlier deadline",
            UrgencyKey::Laxity => "less laxity",
        };
        Release {
            job: from,
            kind,
            count: 1,
            eviction: self.configuration.task_eviction,
            primitive: self.configuration.primitive,
            grace: self.configuration.grace(),
            reason: format!("{job} has {what} and waits, and no {kind} slot is free"),
            beneficiary: Some(job),
        }
    }
}

/// How long a job will yet be at work if it goes on as it did: from the part of its tasks that is done and
/// the time it held slots. Nothing is known of one that has done nothing.
fn projected(job: &Job, worked: Span, view: &ClusterView<'_>) -> Span {
    const WHOLE: u128 = 1_000_000;
    let (mut total, mut done) = (0_u128, 0_u128);
    for kind in TaskKind::ALL {
        total += u128::from(job.tasks_total(kind)) * WHOLE;
        done += u128::from(job.tasks_done(kind)) * WHOLE;
    }
    let progress = |attempt| view.attempt(attempt).and_then(|attempt| attempt.progress_millionths());
    done += job.attempts().filter_map(progress).map(u128::from).sum::<u128>();
    let left = total.saturating_sub(done);
    let remaining = (u128::from(worked.0) * left).checked_div(done).unwrap_or(0);
    Span(u64::try_from(remaining).unwrap_or(u64::MAX))
}

impl Scheduler for NatjamR {
    fn on_event(&mut self, _now: Time, _event: &Event, _view: &ClusterView<'_>) {}

    fn job_changed(&mut self, now: Time, job: JobId, view: &ClusterView<'_>) {
        let Some(known) = view.job(job) else {
            self.queue.remove(job);
            self.worked.remove(&job);
            return self.delay.forget(job);
        };
        if self.by == UrgencyKey::Laxity {
            let holds = TaskKind::ALL.into_iter().any(|kind| known.holding(kind) > 0);
            self.worked.entry(job).or_default().update(now, holds);
        }
        // Laxities are found anew in runs only: in between nobody overtakes.
        let remembered = self.remembered.remove(&job).map(|urgency| (urgency, known.submitted()));
        let key = self.queue.key(job).or(remembered);
        let key = key.unwrap_or_else(|| (self.urgency(now, known, view), known.submitted()));
        self.queue.update(known, key);
    }

    fn schedule(&mut self, now: Time, view: &ClusterView<'_>, actions: &mut Actions) {
        if let Some(offer) = actions.offer() {
            return self.answer(view, offer, actions);
        }
        let has_work = actions.kinds().iter().any(|kind| self.queue.somebody_waits(*kind));
        if !self.runs.is_due(now, has_work) {
            return;
        }
        if self.by == UrgencyKey::Laxity {
            self.order_anew(now, view);
        }
        for &kind in actions.kinds() {
            if self.configuration.takes(kind) && view.free_slots(kind) == 0 {
                self.preempt(kind, view, actions);
            }
        }
    }

    fn rank(&self, spec: &JobSpec) -> i128 {
        spec.deadline.map_or(i128::MAX, |deadline| i128::from(deadline.0))
    }

    fn can_meet(&self, now: Time, spec: &JobSpec, view: &ClusterView<'_>) -> Result<(), String> {
        if self.configuration.admission != DeadlineAdmission::Refuse {
            return Ok(());
        }
        let late = |lateness: Lateness| format!("{lateness}; give it more time with --deadline, or none");
        check_new(now, spec, view, &self.configuration).map_err(late)
    }

    fn remarks(&self, now: Time, job: &Job, view: &ClusterView<'_>) -> Vec<String> {
        if self.configuration.admission == DeadlineAdmission::Off || job.spec().deadline.is_none() {
            return Vec::new();
        }
        let verdict = check_known(now, job, view, &self.configuration);
        let unknown = !is_known(job, view);
        let unknown = unknown.then(|| "nothing is known yet of how long its tasks take".to_owned());
        let late = verdict.err().map(|lateness| format!("it may miss its deadline: {lateness}"));
        unknown.into_iter().chain(late).collect()
    }

    fn save(&self) -> Option<String> {
        let saved = Saved {
            worked: self.worked.iter().map(|(job, worked)| (*job, *worked)).collect(),
            keys: self.queue.jobs().filter_map(|job| Some((job, self.queue.key(job)?.0))).collect(),
            runs: self.runs.clone(),
            delay: self.delay.clone(),
        };
        Some(serde_json::to_string(&saved).expect("plain data is text"))
    }

    fn restore(&mut self, saved: Option<&str>) -> Result<(), String> {
        let saved = saved.ok_or("what Natjam-R remembers is not said")?;
        let saved: Saved = serde_json::from_str(saved).map_err(|error| format!("Natjam-R: {error}"))?;
        self.worked = saved.worked.into_iter().collect();
        self.remembered = saved.keys.into_iter().collect();
        (self.runs, self.delay) = (saved.runs, saved.delay);
        Ok(())
    }

    fn next_wakeup(&self, now: Time) -> Option<Time> {
        [self.runs.next(), self.delay.next_wakeup(now)].into_iter().flatten().min()
    }
}
