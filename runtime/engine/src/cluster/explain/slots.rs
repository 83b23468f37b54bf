//! Why a launchable task has no slot: reasons that depend on workers, slots and other jobs. All applicable
//! ones are listed.

use super::{Order, Reason, ReasonCode, left, seconds};
use crate::cluster::{Cluster, Job, Worker};
use crate::ids::{JobId, TaskId, TaskKind, WorkerId};
use crate::preemption::Primitive;
use crate::sorted::SortedMap;
use crate::states::WorkerState;

/// How many jobs are named; the rest are counted.
const NAMED: usize = 5;

/// Returns every reason why a launchable task has no slot.
pub(super) fn obstacles(
    cluster: &Cluster,
    job: &Job,
    task: TaskId,
    order: Order<'_>,
) -> Vec<Reason> {
    let present: Vec<(WorkerId, &Worker)> = cluster
        .workers
        .iter()
        .filter(|(_, worker)| worker.state() != WorkerState::Lost)
        .collect();
    if present.is_empty() {
        return vec![Reason::new(
            ReasonCode::NoWorker,
            "no worker is up; start one",
        )];
    }
    let kind = task.kind;
    // A slot that is being freed by waiting is a sufficient explanation.
    let mut reasons = freed_for(cluster, job.id, kind, true);
    reasons.extend(unread(cluster, job, task));
    if job.isolates(task) {
        reasons.push(alone(cluster, job, task));
    }
    reasons.extend(
        present
            .iter()
            .filter_map(|(id, worker)| out_of_use(cluster, *id, worker)),
    );
    let usable: Vec<_> = present
        .iter()
        .filter(|(_, worker)| worker.takes_attempts())
        .collect();
    if usable.is_empty() {
        reasons.push(Reason::new(
            ReasonCode::NoWorker,
            "no worker takes new attempts",
        ));
    } else if usable.iter().all(|(_, worker)| worker.slots(kind) == 0) {
        reasons.push(Reason::new(
            ReasonCode::NoSlotsOfKind,
            format!("no worker has {kind} slots"),
        ));
    } else if cluster.slots.free(kind).is_empty() {
        reasons.push(all_taken(cluster, kind));
    }
    for (_, id) in cluster.slots.free(kind).iter() {
        reasons.extend(not_here(cluster, job, task, id));
    }
    reasons.extend(jobs_before(job, kind, order));
    let before = job.phases[kind]
        .pending
        .iter()
        .take_while(|index| *index < task.index)
        .count();
    if before > 0 {
        let text = format!("{before} {kind} tasks of {} come first", job.id);
        reasons.push(Reason::new(ReasonCode::TasksBefore, text));
    }
    reasons.extend(freed_for(cluster, job.id, kind, false));
    reasons
}

/// Returns that a task must run alone, and why.
fn alone(cluster: &Cluster, job: &Job, task: TaskId) -> Reason {
    let deaths = job
        .task(task)
        .map_or(0, |known| known.faults.lost_with.len());
    let place = match cluster.quarantine.cleared() {
        Some(worker) => format!("{worker}, which is reserved for such tasks, is free"),
        None => "a worker can be reserved for it".to_owned(),
    };
    let text = format!(
        "it must run alone because {deaths} workers died while it ran; it starts when {place}"
    );
    Reason::new(ReasonCode::Alone, text)
}

/// Returns the pairs of hosts between which its inputs could not be transferred.
fn unread(cluster: &Cluster, job: &Job, task: TaskId) -> Vec<Reason> {
    if task.kind != TaskKind::Reduce {
        return Vec::new();
    }
    let unread = cluster
        .unread
        .iter()
        .filter(|(holder, _)| job.outputs_on(*holder).next().is_some());
    let text = |holder, reader| format!("{reader} could not read map outputs from {holder}");
    unread
        .map(|(holder, reader)| Reason::new(ReasonCode::OutputsUnread, text(holder, reader)))
        .collect()
}

fn out_of_use(cluster: &Cluster, id: WorkerId, worker: &Worker) -> Option<Reason> {
    let because = |code, text| Some(Reason::new(code, text));
    if worker.state() == WorkerState::Draining {
        return because(ReasonCode::Draining, format!("{id} is draining"));
    }
    if let Some(lacks) = worker.health().reported_shortage() {
        let text = format!("{id} receives no tasks until its shortage is over: {lacks}");
        return because(ReasonCode::WorkerShort, text);
    }
    if worker.is_cleared() {
        let text = format!(
            "{id} is reserved for a task that must run alone because workers died while it ran"
        );
        return because(ReasonCode::WorkerKept, text);
    }
    let exclusion = worker.exclusion()?;
    let left = seconds(exclusion.until.since(cluster.now));
    let text = format!(
        "{id} is excluded for another {left}: {}",
        exclusion.blame.in_words()
    );
    because(ReasonCode::Excluded, text)
}

/// Returns that every slot is held, and by which jobs.
fn all_taken(cluster: &Cluster, kind: TaskKind) -> Reason {
    let mut holders: SortedMap<JobId, u32> = SortedMap::new();
    for attempt in cluster
        .attempts
        .values()
        .filter(|one| one.holds_slot && one.id.task.kind == kind)
    {
        *holders.get_or_default(attempt.id.task.job) += 1;
    }
    let mut holders: Vec<(JobId, u32)> = holders.into_iter().collect();
    holders.sort_by_key(|(job, count)| (std::cmp::Reverse(*count), *job));
    let mut named: Vec<String> = holders
        .iter()
        .take(NAMED)
        .map(|(job, count)| format!("{job} holds {count}"))
        .collect();
    let rest = holders
        .iter()
        .skip(NAMED)
        .map(|(_, count)| count)
        .sum::<u32>();
    match holders.len().saturating_sub(NAMED) {
        0 => {}
        1 => named.push(format!("another job {rest}")),
        others => named.push(format!("{others} other jobs {rest}")),
    }
    let text = format!("no {kind} slot is free: {}", named.join(", "));
    Reason::new(ReasonCode::AllSlotsTaken, text)
}

/// Returns why a worker with a free slot does not run a task.
fn not_here(cluster: &Cluster, job: &Job, task: TaskId, id: WorkerId) -> Vec<Reason> {
    let worker = &cluster.workers[&id];
    let kind = task.kind;
    let mut reasons = Vec::new();
    if job.avoids(task, id) {
        let text = why_avoided(cluster, job, task, id);
        reasons.push(Reason::new(ReasonCode::FailedThere, text));
    } else if !worker.has_slot_for(job.id, kind) {
        let kept = worker
            .reservations()
            .iter()
            .filter(|kept| kept.kind == kind);
        reasons.extend(kept.map(|kept| {
            let left = seconds(kept.until.since(cluster.now));
            let text = format!(
                "a free {kind} slot of {id} is kept for {} for another {left}",
                kept.job
            );
            Reason::new(ReasonCode::KeptFor, text)
        }));
    } else if let Some(reason) = worker.declined(kind) {
        let text = format!("the scheduler left a {kind} slot of {id} empty: {reason}");
        reasons.push(Reason::new(ReasonCode::Declined, text));
    }
    reasons
}

/// Returns why a task does not use a free slot of a worker.
fn why_avoided(cluster: &Cluster, job: &Job, task: TaskId, id: WorkerId) -> String {
    let kind = task.kind;
    let phase = &job.phases[kind];
    let pause = job
        .task(task)
        .and_then(|known| known.faults.pauses.get(&id));
    if let Some(pause) = pause {
        let left = seconds(pause.until.since(cluster.now));
        return format!(
            "the task is not retried on {id} for another {left}: {}",
            pause.reason
        );
    }
    if let Some(streak) = phase.streaks.get(&id)
        && let Some(until) = streak.avoided_until
        && phase.shunned.contains(&id)
    {
        let left = seconds(until.since(cluster.now));
        let failures = streak.failures;
        return format!(
            "{kind}s of {} avoid {id} for another {left}: {failures} of them failed there",
            job.id
        );
    }
    format!("{id} has a free {kind} slot, but the task failed there and another worker can run it")
}

/// Returns the jobs that come first.
fn jobs_before(job: &Job, kind: TaskKind, order: Order<'_>) -> Option<Reason> {
    let mut before = order(kind);
    let place = before.iter().position(|id| *id == job.id)?;
    before.truncate(place);
    let named: Vec<String> = before.iter().take(NAMED).map(ToString::to_string).collect();
    let rest = before.len().saturating_sub(NAMED);
    let rest = if rest > 0 {
        format!(" and {rest} more")
    } else {
        String::new()
    };
    let text = format!(
        "jobs that want {kind} slots and come first: {}{rest}",
        named.join(", ")
    );
    (!before.is_empty()).then(|| Reason::new(ReasonCode::JobsBefore, text))
}

/// Returns the slots that are being freed for a job: by victims that may finish (`finish`), or by the others.
fn freed_for(cluster: &Cluster, job: JobId, kind: TaskKind, finish: bool) -> Vec<Reason> {
    let requests = cluster.requests.iter();
    let mine = requests.filter(|one| {
        one.beneficiary == Some(job)
            && one.attempt.task.kind == kind
            && (one.primitive == Primitive::Wait) == finish
    });
    mine.map(|request| {
        let since = seconds(cluster.now.since(request.created));
        let attempt = request.attempt;
        let primitive = request.primitive;
        if primitive == Primitive::Wait {
            let instead = match request.asked {
                Primitive::Wait => "",
                Primitive::Suspend => " instead of suspending it",
                Primitive::Checkpoint => " instead of checkpointing it",
                Primitive::Kill => " instead of killing it",
            };
            let left = left(cluster, &cluster.attempts[&attempt]);
            let left = left.map_or_else(String::new, |left| format!(" ({left})"));
            let reason = &request.reason;
            let text = format!("{job} waits for {attempt} to finish{left}{instead}: {reason}");
            return Reason::new(ReasonCode::BeingFreed, text);
        }
        let text =
            format!("{attempt} is being preempted for {job} ({primitive}, requested {since} ago)");
        Reason::new(ReasonCode::BeingFreed, text)
    })
    .collect()
}
