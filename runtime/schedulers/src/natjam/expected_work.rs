//! The work of jobs with deadlines, for admission. Task lengths come from finished tasks of the job, else
//! from the last job of the same name, else from all jobs. Tasks of unknown length count as zero.

use napreduce_engine::{
    ByKind, ClusterView, Job, JobId, JobSpec, JobState, Lengths, Primitive, Span, TaskKind, Time,
    sort_by_key,
};

use crate::natjam::admission::{DueJob, DueSlots, DueWork, Lateness, admit};
use crate::natjam::configuration::NatjamRConfiguration;

/// Checks whether a new job and the current jobs can meet their deadlines.
///
/// # Errors
/// Reports the job that would be late.
pub(super) fn check_new(
    now: Time,
    spec: &JobSpec,
    view: &ClusterView<'_>,
    configuration: &NatjamRConfiguration,
) -> Result<(), Lateness> {
    let Some(deadline) = spec.deadline else {
        return Ok(());
    };
    let tasks = ByKind {
        map: spec.maps.len() as u64,
        reduce: u64::from(spec.reduces),
    };
    let lengths = ByKind::from_fn(|kind| view.lengths(&spec.name, None, kind).unwrap_or_default());
    let work = ByKind::from_fn(|kind| work_of(tasks[kind], lengths[kind]));
    // Its id is not assigned yet; it sorts after the current jobs.
    let new = DueJob {
        job: JobId(u32::MAX),
        deadline,
        work,
        held: ByKind::default(),
    };
    let (mut dues, slots) = dues(now, view, configuration);
    let place = dues.partition_point(|due| due.deadline <= deadline);
    dues.insert(place, new);
    admit(now, &dues, place, &slots)
}

/// Checks whether a current job can meet its deadline.
///
/// # Errors
/// Reports by how much it may be late.
pub(super) fn check_known(
    now: Time,
    job: &Job,
    view: &ClusterView<'_>,
    configuration: &NatjamRConfiguration,
) -> Result<(), Lateness> {
    let (dues, slots) = dues(now, view, configuration);
    match dues.iter().position(|due| due.job == job.id()) {
        Some(place) => admit(now, &dues[..=place], place, &slots),
        None => Ok(()),
    }
}

/// Whether the lengths of its tasks are known.
pub(super) fn is_known(job: &Job, view: &ClusterView<'_>) -> bool {
    let has = |kind: &TaskKind| job.tasks_total(*kind) > 0;
    TaskKind::ALL
        .iter()
        .filter(|kind| has(kind))
        .all(|kind| view.lengths(&job.spec().name, Some(job), *kind).is_some())
}

/// Returns the work of `tasks` unstarted tasks.
fn work_of(tasks: u64, lengths: Lengths) -> DueWork {
    let all = u128::from(lengths.total.0) * u128::from(tasks);
    let all = all.div_ceil(u128::from(lengths.tasks.max(1)));
    let longest = if tasks == 0 { Span(0) } else { lengths.longest };
    DueWork {
        total: Span(u64::try_from(all).unwrap_or(u64::MAX)),
        longest,
    }
}

/// Returns the jobs with deadlines in order, and the slots with the time that other jobs hold them.
fn dues(
    now: Time,
    view: &ClusterView<'_>,
    configuration: &NatjamRConfiguration,
) -> (Vec<DueJob>, ByKind<DueSlots>) {
    let mut slots = ByKind::from_fn(|kind| {
        let count = view.slots(kind);
        let preempts = configuration.preempts(kind) && configuration.primitive != Primitive::Wait;
        let runs = u64::from(count.div_ceil(configuration.per_run.max(1)));
        let taking = preempts.then(|| Span(configuration.interval.0.saturating_mul(runs)));
        DueSlots {
            count,
            held: Span(0),
            taking,
        }
    });
    let mut dues = Vec::new();
    // Takes the jobs of the view, since `job_changed` reports simultaneous arrivals one by one.
    for job in view
        .jobs()
        .filter(|job| job.state() == JobState::Active && !job.is_master())
    {
        let held = ByKind::from_fn(|kind| held(now, job, kind, view));
        match job.spec().deadline {
            Some(deadline) => {
                let work = ByKind::from_fn(|kind| remaining(now, job, kind, view));
                dues.push((
                    job.submitted(),
                    DueJob {
                        job: job.id(),
                        deadline,
                        work,
                        held,
                    },
                ));
            }
            None => {
                for kind in TaskKind::ALL {
                    slots[kind].held = Span(slots[kind].held.0.saturating_add(held[kind].0));
                }
            }
        }
    }
    sort_by_key(&mut dues, |(submitted, due)| {
        (due.deadline, *submitted, due.job)
    });
    (dues.into_iter().map(|(_, due)| due).collect(), slots)
}

fn lengths_of(job: &Job, kind: TaskKind, view: &ClusterView<'_>) -> Lengths {
    view.lengths(&job.spec().name, Some(job), kind)
        .unwrap_or_default()
}

/// Returns the remaining work of a job: its unfinished tasks minus the work of attempts and checkpoints.
fn remaining(now: Time, job: &Job, kind: TaskKind, view: &ClusterView<'_>) -> DueWork {
    let lengths = lengths_of(job, kind, view);
    let tasks = job.tasks_total(kind).saturating_sub(job.tasks_done(kind));
    let work = work_of(u64::from(tasks), lengths);
    let mean = lengths.mean().unwrap_or_default();
    let live = job.attempts_of_kind(kind).filter_map(|id| view.attempt(id));
    // A duplicate adds no work to its original.
    let live = live
        .filter(|attempt| attempt.duplicate_of().is_none())
        .map(|attempt| attempt.work_time(now));
    let saved = job
        .checkpointed(kind)
        .filter_map(|(task, ..)| job.history(task))
        .map(|known| known.service);
    let done = live
        .chain(saved)
        .fold(0_u64, |sum, done| sum.saturating_add(done.min(mean).0));
    DueWork {
        total: Span(work.total.0.saturating_sub(done)),
        ..work
    }
}

/// Returns the time for which its attempts may still hold their slots without preemption.
fn held(now: Time, job: &Job, kind: TaskKind, view: &ClusterView<'_>) -> Span {
    let longest = lengths_of(job, kind, view).longest;
    let live = job.attempts_of_kind(kind).filter_map(|id| view.attempt(id));
    let live = live.filter(|attempt| attempt.holds_slot());
    Span(live.fold(0_u64, |sum, attempt| {
        sum.saturating_add(longest.0.saturating_sub(attempt.work_time(now).0))
    }))
}
