//! Natjam-R: one queue in order of urgency. The least urgent jobs lose slots to the most urgent ones.

use serde::{Deserialize, Serialize};

use napreduce_engine::{
    Actions, Claims, ClusterView, Event, Job, JobId, JobSpec, Offer, PolicyRefusal, Release,
    Scheduler, SortedMap, SortedSet, Span, TaskKind, Time,
};

use crate::natjam::admission::{DeadlineAdmission, Lateness};
use crate::natjam::configuration::{NatjamConfigurationError, NatjamRConfiguration};
use crate::natjam::expected_work::{check_known, check_new, is_known};
use crate::natjam::job_index::{JobIndex, serve_job};
use crate::natjam::places::Places;
use crate::natjam::reclaim::Runs;
use crate::natjam::urgency::{Urgency, UrgencyKey};
use crate::serving::Delay;
use crate::tables::{Built, ConfiguredPrimitive, JobAttributes, PolicyTable, PolicyTables};

/// The sort key of a job: urgency, then submission. Ties by id.
type Key = (Urgency, Time);

/// One queue by deadline or laxity; see `docs/schedulers/natjam.md`.
pub struct NatjamR {
    configuration: NatjamRConfiguration,
    by: UrgencyKey,
    queue: JobIndex<Key>,
    /// Time for which each job has held slots; used with laxity only.
    worked: SortedMap<JobId, Worked>,
    /// Saved keys of jobs that have not been reported since the restore.
    remembered: SortedMap<JobId, Urgency>,
    runs: Runs,
    delay: Delay,
}

/// Time for which a job has held at least one slot.
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
            *self = Worked {
                before: self.until(now),
                since: None,
            };
        }
    }
}

/// The state that cannot be derived from the cluster view.
#[derive(Serialize, Deserialize)]
struct Saved {
    worked: Vec<(JobId, Worked)>,
    keys: Vec<(JobId, Urgency)>,
    runs: Runs,
    delay: Delay,
}

impl NatjamR {
    /// Creates the policy.
    ///
    /// # Errors
    /// Fails if a value is invalid, or if eviction and selection use different keys.
    pub fn new(configuration: NatjamRConfiguration) -> Result<NatjamR, NatjamConfigurationError> {
        let by = configuration.check()?;
        Ok(NatjamR {
            by,
            queue: JobIndex::new(),
            worked: SortedMap::new(),
            remembered: SortedMap::new(),
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
                let worked = self
                    .worked
                    .get(&job.id())
                    .copied()
                    .unwrap_or_default()
                    .until(now);
                Urgency::of_laxity(deadline, now, projected(job, worked, view))
            }
        }
    }

    fn assign(&mut self, view: &ClusterView<'_>, offer: Offer, actions: &mut Actions) {
        if actions.chooses_kind(view) && self.queue.other_kind_first(offer.kind) {
            return actions.decline("a task of the other kind is more urgent");
        }
        let served = match offer.reserved_for {
            Some(job) => view
                .job(job)
                .is_some_and(|job| serve_job(job, &mut self.delay, view, offer, actions)),
            None => self
                .queue
                .serve_first(&mut self.delay, view, offer, actions)
                .is_some(),
        };
        if !served {
            actions.decline("no eligible job can use the slot");
        }
    }

    /// Recomputes all laxities.
    fn update_laxities(&mut self, now: Time, view: &ClusterView<'_>) {
        let jobs: Vec<&Job> = self.queue.jobs().filter_map(|job| view.job(job)).collect();
        for job in jobs {
            let key = (self.urgency(now, job, view), job.submitted());
            self.queue.update(job, key);
        }
    }

    /// Preempts slots of the least urgent jobs for the most urgent waiting ones.
    fn preempt(&self, kind: TaskKind, view: &ClusterView<'_>, actions: &mut Actions) {
        let both = actions.has_both_kinds(view);
        let kinds = || TaskKind::ALL.into_iter().filter(|one| both || *one == kind);
        let demand = |id: JobId| {
            view.job(id).map_or(0, |job| {
                let promised: u32 = kinds().map(|kind| job.promised(kind)).sum();
                kinds()
                    .map(|kind| job.eligible_count(kind))
                    .sum::<u32>()
                    .saturating_sub(promised)
            })
        };
        let usable_for: Vec<TaskKind> = kinds().collect();
        let mut claims = Claims::new(*view, &usable_for);
        let mut places = Places::new(*view, kind);
        let mut left = self.configuration.per_run;
        let open: SortedSet<(Key, JobId)> =
            kinds().flat_map(|kind| self.queue.open(kind)).collect();
        for (key, job) in open {
            if left == 0 {
                return;
            }
            let gives_way = |(urgent, from): &(Key, JobId)| {
                (*urgent, *from) > (key, job)
                    && urgent.0.yields_to(key.0, self.configuration.laxity_margin)
            };
            for _ in 0..demand(job) {
                if left == 0 {
                    return;
                }
                let mut behind = self.queue.holders(kind).rev().take_while(gives_way);
                let Some((_, from)) =
                    behind.find(|(_, from)| places.take_for(*from, job, &mut claims))
                else {
                    break;
                };
                actions.release(self.release(from, kind, job));
                left -= 1;
            }
        }
    }

    fn release(&self, from: JobId, kind: TaskKind, job: JobId) -> Release {
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
            reason: format!("{job} has {what} and no {kind} slot is free"),
            beneficiary: Some(job),
        }
    }
}

/// Projects the remaining run time of a job from its completed fraction and the time it has held slots. Zero
/// without progress.
fn projected(job: &Job, worked: Span, view: &ClusterView<'_>) -> Span {
    const WHOLE: u128 = 1_000_000;
    let mut total = 0_u128;
    let mut done = 0_u128;
    for kind in TaskKind::ALL {
        total += u128::from(job.tasks_total(kind)) * WHOLE;
        done += u128::from(job.tasks_done(kind)) * WHOLE;
    }
    let progress = |attempt| {
        view.attempt(attempt)
            .and_then(|attempt| attempt.progress_millionths())
    };
    done += job
        .attempts()
        .filter_map(progress)
        .map(u128::from)
        .sum::<u128>();
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
            let holds = TaskKind::ALL
                .into_iter()
                .any(|kind| known.holding(kind) > 0);
            self.worked.get_or_default(job).update(now, holds);
        }
        // Laxities change in runs only, so jobs do not overtake each other in between.
        let remembered = self
            .remembered
            .remove(&job)
            .map(|urgency| (urgency, known.submitted()));
        let key = self.queue.key(job).or(remembered);
        let key = key.unwrap_or_else(|| (self.urgency(now, known, view), known.submitted()));
        self.queue.update(known, key);
    }

    fn schedule(&mut self, now: Time, view: &ClusterView<'_>, actions: &mut Actions) {
        if let Some(offer) = actions.offer() {
            return self.assign(view, offer, actions);
        }
        let has_work = actions
            .kinds()
            .iter()
            .any(|kind| self.queue.has_demand(*kind));
        if !self.runs.is_due(now, has_work) {
            return;
        }
        if self.by == UrgencyKey::Laxity {
            self.update_laxities(now, view);
        }
        for &kind in actions.kinds() {
            if self.configuration.preempts(kind) && view.free_slots(kind) == 0 {
                self.preempt(kind, view, actions);
            }
        }
    }

    fn order(&self, kind: TaskKind, _view: &ClusterView<'_>) -> Vec<JobId> {
        self.queue.open(kind).map(|(_, job)| job).collect()
    }

    fn is_before(&self, _kind: TaskKind, one: &Job, other: &Job) -> bool {
        let order = |job: &Job| Some((self.queue.key(job.id())?, job.id()));
        match (order(one), order(other)) {
            (Some(one), Some(other)) => one < other,
            _ => false,
        }
    }

    fn rank(&self, spec: &JobSpec) -> i128 {
        spec.deadline
            .map_or(i128::MAX, |deadline| i128::from(deadline.0))
    }

    fn can_meet(
        &self,
        now: Time,
        spec: &JobSpec,
        view: &ClusterView<'_>,
    ) -> Result<(), PolicyRefusal> {
        if self.configuration.admission != DeadlineAdmission::Refuse {
            return Ok(());
        }
        let late = |lateness: Lateness| PolicyRefusal::Deadline(lateness.to_string());
        check_new(now, spec, view, &self.configuration).map_err(late)
    }

    fn remarks(&self, now: Time, job: &Job, view: &ClusterView<'_>) -> Vec<String> {
        if self.configuration.admission == DeadlineAdmission::Off || job.spec().deadline.is_none() {
            return Vec::new();
        }
        let verdict = check_known(now, job, view, &self.configuration);
        let unknown = !is_known(job, view);
        let unknown = unknown.then(|| "the length of its tasks is not known yet".to_owned());
        let late = verdict
            .err()
            .map(|lateness| format!("it may miss its deadline: {lateness}"));
        unknown.into_iter().chain(late).collect()
    }

    fn save(&self) -> Option<String> {
        let saved = Saved {
            worked: self
                .worked
                .iter()
                .map(|(job, worked)| (*job, *worked))
                .collect(),
            keys: self
                .queue
                .jobs()
                .filter_map(|job| Some((job, self.queue.key(job)?.0)))
                .collect(),
            runs: self.runs.clone(),
            delay: self.delay.clone(),
        };
        Some(serde_json::to_string(&saved).expect("plain data serializes"))
    }

    fn restore(&mut self, saved: Option<&str>) -> Result<(), String> {
        let saved = saved.ok_or("natjam-deadline: the snapshot has no saved state")?;
        let saved: Saved = serde_json::from_str(saved)
            .map_err(|error| format!("natjam-deadline: invalid saved state: {error}"))?;
        self.worked = saved.worked.into_iter().collect();
        self.remembered = saved.keys.into_iter().collect();
        self.runs = saved.runs;
        self.delay = saved.delay;
        Ok(())
    }

    fn next_wakeup(&self, now: Time) -> Option<Time> {
        [self.runs.next(), self.delay.next_wakeup(now)]
            .into_iter()
            .flatten()
            .min()
    }
}

impl PolicyTable for NatjamRConfiguration {
    fn build(&self, _all: &PolicyTables<'_>) -> Built {
        Ok(Box::new(NatjamR::new(self.clone())?))
    }

    fn primitives(
        &self,
        kind: TaskKind,
        _job: &str,
        _all: &PolicyTables<'_>,
    ) -> Vec<ConfiguredPrimitive> {
        Vec::from_iter(
            self.preempts(kind)
                .then_some(("[scheduler.natjam-deadline] primitive", self.primitive)),
        )
    }

    fn honored_attributes(&self, _all: &PolicyTables<'_>) -> JobAttributes {
        JobAttributes {
            deadline: true,
            ..JobAttributes::default()
        }
    }
}
