//! Whether a job will use a slot that is freed for it on a worker. Policies choose victims by this rule, and
//! the engine ignores requests that violate it, so that no task loses its slot in vain.

use crate::cluster::{Cluster, ClusterView, Job, Worker};
use crate::ids::{AttemptId, JobId, TaskKind, WorkerId};
use crate::sorted::SortedMap;
use crate::states::JobState;
use crate::time::Time;

/// Slots that were decided to be freed for jobs, but not requested yet.
#[derive(Debug, Default)]
pub(crate) struct Planned {
    on: SortedMap<(JobId, WorkerId), u32>,
    of: SortedMap<JobId, u32>,
}

impl Planned {
    fn on(&self, job: JobId, worker: WorkerId) -> u32 {
        self.on.get(&(job, worker)).copied().unwrap_or_default()
    }

    fn of(&self, job: JobId) -> u32 {
        self.of.get(&job).copied().unwrap_or_default()
    }

    fn add(&mut self, job: JobId, worker: WorkerId) {
        *self.on.get_or_default((job, worker)) += 1;
        *self.of.get_or_default(job) += 1;
    }
}

/// The slots of a kind that a policy frees for jobs in one round.
///
/// A slot is of use to a job only on a worker that takes attempts, where the job has a suspended attempt, or
/// which can run one of its tasks: tasks that failed there are left out. Slots that are already on their way
/// to the job count: each serves one suspended attempt or one task. A worker whose slot was freed for the job
/// in vain is left out until the job starts something there.
///
/// ```
/// use napreduce_engine::{Claims, ClusterView, JobId, TaskKind, WorkerId};
///
/// /// Returns the workers on which slots should be freed for a job.
/// fn places(view: ClusterView<'_>, job: JobId, workers: &[WorkerId]) -> Vec<WorkerId> {
///     let mut claims = Claims::new(view, &[TaskKind::Map]);
///     let mut chosen = Vec::new();
///     for worker in workers {
///         if claims.wants_on(job, *worker) {
///             claims.add(job, *worker);
///             chosen.push(*worker);
///         }
///     }
///     chosen
/// }
/// # let _ = places;
/// ```
#[derive(Debug)]
pub struct Claims<'a> {
    view: ClusterView<'a>,
    kinds: &'a [TaskKind],
    planned: Planned,
}

impl<'a> Claims<'a> {
    /// Creates an empty list of slots that can be used for tasks of these kinds.
    pub fn new(view: ClusterView<'a>, kinds: &'a [TaskKind]) -> Claims<'a> {
        Claims {
            view,
            kinds,
            planned: Planned::default(),
        }
    }

    /// Returns the time of the view.
    pub fn now(&self) -> Time {
        self.view.now()
    }

    /// Returns whether a job will use another slot that is freed for it on a worker.
    pub fn wants_on(&self, job: JobId, worker: WorkerId) -> bool {
        let cluster = self.view.cluster();
        cluster
            .jobs
            .get(&job)
            .is_some_and(|job| cluster.will_use(job, self.kinds, worker, &self.planned))
    }

    /// Adds a slot that will be freed for a job on a worker.
    pub fn add(&mut self, job: JobId, worker: WorkerId) {
        self.planned.add(job, worker);
    }
}

impl ClusterView<'_> {
    /// Returns whether a job will use another slot of a kind that is freed for it on a worker.
    pub fn wants_on(&self, job: JobId, worker: WorkerId, kind: TaskKind) -> bool {
        Claims::new(*self, &[kind]).wants_on(job, worker)
    }
}

impl Cluster {
    /// Returns whether a job will use another slot that is freed for it on a worker: see [`Claims`].
    pub fn will_use(
        &self,
        job: &Job,
        kinds: &[TaskKind],
        worker: WorkerId,
        planned: &Planned,
    ) -> bool {
        let Some(known) = self.workers.get(&worker) else {
            return false;
        };
        if job.state != JobState::Active || job.pause.is_some() || !known.takes_attempts() {
            return false;
        }
        if kinds
            .iter()
            .all(|kind| job.unused_on[*kind].contains(&worker))
        {
            return false;
        }
        let promised_here = self.promised_on(job, kinds, known) + planned.on(job.id, worker);
        let suspended_here: u32 = kinds
            .iter()
            .map(|kind| job.suspended_count_on(*kind, worker))
            .sum();
        if suspended_here > promised_here {
            return true;
        }
        let launchable: u32 = kinds.iter().map(|kind| job.eligible_count(*kind)).sum();
        let launchable_here: u32 = kinds
            .iter()
            .map(|kind| job.launchable_on(*kind, worker))
            .sum();
        if promised_here - suspended_here >= launchable_here {
            return false;
        }
        let promised: u32 = kinds.iter().map(|kind| job.promised(*kind)).sum();
        let promised = promised + planned.of(job.id);
        promised.saturating_sub(self.promised_to_suspended(job, kinds, planned)) < launchable
    }

    /// Returns how many of the slots that are being freed or kept for a job are more than it can use.
    pub fn surplus(&self, job: &Job, kinds: &[TaskKind]) -> u32 {
        let promised: u32 = kinds.iter().map(|kind| job.promised(*kind)).sum();
        let launchable: u32 = kinds.iter().map(|kind| job.eligible_count(*kind)).sum();
        if promised <= launchable {
            return 0;
        }
        let serve = self.promised_to_suspended(job, kinds, &Planned::default());
        promised.saturating_sub(serve).saturating_sub(launchable)
    }

    /// Returns whether every slot that is freed or kept for a job on a worker serves a suspended attempt.
    pub fn serves_suspended(&self, job: &Job, kinds: &[TaskKind], worker: WorkerId) -> bool {
        let Some(known) = self.workers.get(&worker) else {
            return false;
        };
        let suspended_here: u32 = kinds
            .iter()
            .map(|kind| job.suspended_count_on(*kind, worker))
            .sum();
        self.promised_on(job, kinds, known) <= suspended_here
    }

    /// Returns how many slots on a worker are being freed or kept for a job.
    fn promised_on(&self, job: &Job, kinds: &[TaskKind], worker: &Worker) -> u32 {
        if kinds.iter().all(|kind| job.promised(*kind) == 0) {
            return 0;
        }
        let is_for_job = |id: &AttemptId| {
            kinds.contains(&id.task.kind)
                && self
                    .requests
                    .get(id)
                    .is_some_and(|request| request.beneficiary == Some(job.id))
        };
        let requested = worker.attempts().filter(is_for_job).count();
        let reservations = worker.reservations().iter();
        let kept = reservations
            .filter(|kept| kept.job == job.id && kinds.contains(&kept.kind))
            .count();
        (requested + kept) as u32
    }

    /// Returns how many of the slots that are promised to a job serve its suspended attempts.
    fn promised_to_suspended(&self, job: &Job, kinds: &[TaskKind], planned: &Planned) -> u32 {
        let mut suspended: SortedMap<WorkerId, u32> = SortedMap::new();
        for kind in kinds {
            for (worker, _) in &job.suspended[*kind] {
                *suspended.get_or_default(*worker) += 1;
            }
        }
        let mut served = 0;
        for (worker, count) in suspended {
            let Some(known) = self.workers.get(&worker) else {
                continue;
            };
            let promised = self.promised_on(job, kinds, known) + planned.on(job.id, worker);
            served += promised.min(count);
        }
        served
    }
}

impl Job {
    /// Returns how many of its attempts of a kind are suspended on a worker and wait for a slot there.
    fn suspended_count_on(&self, kind: TaskKind, worker: WorkerId) -> u32 {
        let (first, last) = AttemptId::range_of(self.id, kind);
        self.suspended[kind]
            .range((worker, first)..=(worker, last))
            .count() as u32
    }

    /// Returns how many of its tasks of a kind may be launched now on a worker.
    fn launchable_on(&self, kind: TaskKind, worker: WorkerId) -> u32 {
        let phase = &self.phases[kind];
        let is_left_out =
            |index: &&u32| phase.pending.contains(**index) && !phase.isolated.contains(*index);
        let avoided = phase.avoided.get(&worker);
        let left_out = avoided.map_or(0, |avoided| avoided.iter().filter(is_left_out).count());
        self.eligible_count(kind).saturating_sub(left_out as u32)
    }
}
