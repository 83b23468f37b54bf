//! How long jobs with deadlines will yet be at work, as far as that is known, and who would be late
//! with one more.
//!
//! Owns the estimates: a task takes as long as those of its job that are done, else as those of the last job
//! of the same name, else as those of all jobs; of one of which nothing is known it takes no time. Does not
//! own the bound (`admission`).

use napreduce_engine::{
    ByKind, ClusterView, Job, JobId, JobSpec, JobState, Lengths, Primitive, Span, TaskKind, Time,
};

use crate::natjam::admission::{DueJob, DueSlots, DueWork, Lateness, admit};
use crate::natjam::configuration::NatjamRConfiguration;

/// Whether a job can be done by its deadline beside those that there are, and these by theirs.
///
/// # Errors
/// Says who would be late.
pub(super) fn check_new(
    now: Time,
    spec: &JobSpec,
    view: &ClusterView<'_>,
    configuration: &NatjamRConfiguration,
) -> Result<(), Lateness> {
    let Some(deadline) = spec.deadline else { return Ok(()) };
    let tasks = ByKind { map: spec.maps.len() as u64, reduce: u64::from(spec.reduces) };
    let lengths = ByKind::of(|kind| view.lengths(&spec.name, None, kind).unwrap_or_default());
    let work = ByKind::of(|kind| of_tasks(tasks[kind], lengths[kind]));
    // Its number is not known yet; it comes after those that were there.
    let new = DueJob { job: JobId(u32::MAX), deadline, work, held: ByKind::default() };
    let (mut dues, slots) = dues(now, view, configuration);
    let place = dues.partition_point(|due| due.deadline <= deadline);
    dues.insert(place, new);
    admit(now, &dues, place, &slots)
}

/// Whether a job that is there can be done by its deadline.
///
/// # Errors
/// Says by how much it may be late.
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

/// Whether anything is known of how long its tasks take.
pub(super) fn is_known(job: &Job, view: &ClusterView<'_>) -> bool {
    let has = |kind: &TaskKind| job.tasks_total(*kind) > 0;
    TaskKind::ALL
        .iter()
        .filter(|kind| has(kind))
        .all(|kind| view.lengths(&job.spec().name, Some(job), *kind).is_some())
}

/// So many tasks from their beginning.
fn of_tasks(tasks: u64, lengths: Lengths) -> DueWork {
    let all = u128::from(lengths.total.0) * u128::from(tasks);
    let all = all.div_ceil(u128::from(lengths.tasks.max(1)));
    let longest = if tasks == 0 { Span(0) } else { lengths.longest };
    DueWork { total: Span(u64::try_from(all).unwrap_or(u64::MAX)), longest }
}

/// The jobs with deadlines in their order, and the slots with what all others hold of them.
fn dues(
    now: Time,
    view: &ClusterView<'_>,
    configuration: &NatjamRConfiguration,
) -> (Vec<DueJob>, ByKind<DueSlots>) {
    let mut slots = ByKind::of(|kind| {
        let count = view.slots(kind);
        let takes = configuration.takes(kind) && configuration.primitive != Primitive::Wait;
        let runs = u64::from(count.div_ceil(configuration.per_run.max(1)));
        let taking = takes.then(|| Span(configuration.interval.0.saturating_mul(runs)));
        DueSlots { count, held: Span(0), taking }
    });
    let mut dues = Vec::new();
    // Not those that a policy was told of: of several that come at once it hears later.
    for job in view.jobs().filter(|job| job.state() == JobState::Active && !job.is_master()) {
        let held = ByKind::of(|kind| held(now, job, kind, view));
        match job.spec().deadline {
            Some(deadline) => {
                let work = ByKind::of(|kind| left(now, job, kind, view));
                dues.push((job.submitted(), DueJob { job: job.id(), deadline, work, held }));
            }
            None => {
                for kind in TaskKind::ALL {
                    slots[kind].held = Span(slots[kind].held.0.saturating_add(held[kind].0));
                }
            }
        }
    }
    dues.sort_by_key(|(submitted, due)| (due.deadline, *submitted, due.job));
    (dues.into_iter().map(|(_, due)| due).collect(), slots)
}

fn lengths_of(job: &Job, kind: TaskKind, view: &ClusterView<'_>) -> Lengths {
    view.lengths(&job.spec().name, Some(job), kind).unwrap_or_default()
}

/// What a job has yet to do: its tasks that are not done, less what its attempts and checkpoints
/// have done of them.
fn left(now: Time, job: &Job, kind: TaskKind, view: &ClusterView<'_>) -> DueWork {
    let lengths = lengths_of(job, kind, view);
    let tasks = job.tasks_total(kind).saturating_sub(job.tasks_done(kind));
    let work = of_tasks(u64::from(tasks), lengths);
    let mean = lengths.mean().unwrap_or_default();
    let live = job.attempts_of_kind(kind).filter_map(|id| view.attempt(id));
    // A duplicate does nothing that its original would not.
    let live = live.filter(|attempt| attempt.duplicate_of().is_none()).map(|attempt| attempt.work_time(now));
    let saved = job.checkpointed(kind).filter_map(|(task, ..)| job.history(task)).map(|known| known.service);
    let done = live.chain(saved).fold(0_u64, |sum, done| sum.saturating_add(done.min(mean).0));
    DueWork { total: Span(work.total.0.saturating_sub(done)), ..work }
}

/// How long its attempts may yet hold their slots, were none taken.
fn held(now: Time, job: &Job, kind: TaskKind, view: &ClusterView<'_>) -> Span {
    let longest = lengths_of(job, kind, view).longest;
    let live = job.attempts_of_kind(kind).filter_map(|id| view.attempt(id));
    let live = live.filter(|attempt| attempt.holds_slot());
    Span(
        live.fold(0_u64, |sum, attempt| {
            sum.saturating_add(longest.0.saturating_sub(attempt.work_time(now).0))
        }),
    )
}
