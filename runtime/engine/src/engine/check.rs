//! All invariants of the engine that hold between events, checked from scratch. For tests and simulators: it
//! visits all state.

use std::cmp::Reverse;

use crate::cluster::{Cluster, Deadline, Job, Worker};
use crate::engine::Engine;
use crate::ids::{AttemptId, TaskId, TaskKind, WorkerId};
use crate::preemption::PreemptRequest;
use crate::settings::PreemptionSettings;
use crate::sorted::{SortedMap, SortedSet};
use crate::states::{AttemptState, JobState, TaskState, WorkerState};
use crate::suspended_max::SuspendedMax;

/// Fails with a message if the condition does not hold.
macro_rules! ensure {
    ($holds:expr, $($text:tt)+) => {
        if !$holds {
            return Err(format!($($text)+));
        }
    };
}

impl Engine {
    /// Checks every invariant.
    ///
    /// # Errors
    /// Reports the violated invariant and where it is violated. That is always a bug in this crate.
    pub fn check(&self) -> Result<(), String> {
        let cluster = &self.rules.cluster;
        ensure!(
            self.rules.effects.is_empty(),
            "unsent effects of the last event"
        );
        cluster
            .workers
            .keys()
            .try_for_each(|id| check_worker(cluster, id))?;
        cluster
            .attempts
            .keys()
            .try_for_each(|id| check_attempt(cluster, id))?;
        cluster
            .jobs
            .values()
            .try_for_each(|job| check_job(cluster, job))?;
        cluster.check_racks()?;
        check_limits(cluster, self.rules.settings.preemption.suspended_max)?;
        check_requests(cluster, &self.rules.settings.preemption)?;
        check_indices(cluster)
    }
}

fn check_limits(cluster: &Cluster, most: SuspendedMax) -> Result<(), String> {
    for (id, worker) in cluster.workers.iter() {
        let full = most.is_full(worker.is_full(), worker.stopped());
        ensure!(
            worker.is_full() == full,
            "{id}: {} suspended attempts (limit {most}), marked full: {}",
            worker.stopped(),
            worker.is_full()
        );
    }
    Ok(())
}

fn check_requests(cluster: &Cluster, settings: &PreemptionSettings) -> Result<(), String> {
    for request in cluster.requests.iter() {
        let id = request.attempt;
        ensure!(
            cluster.attempts.contains_key(&id),
            "{id}: preemption request for an attempt that does not exist"
        );
        let useful = request.beneficiary.is_none_or(|job| {
            cluster
                .jobs
                .get(&job)
                .is_some_and(|job| job.state == JobState::Active)
        });
        ensure!(useful, "{id}: preempted for a job that has ended");
        let surplus = request
            .beneficiary
            .and_then(|job| cluster.surplus_request(job));
        ensure!(
            surplus.is_none(),
            "{id}: preempted for a job that needs no more slots: {surplus:?}"
        );
        let deadlines = Deadline::for_request(request, settings);
        for (due, deadline) in deadlines.filter(|(due, _)| *due > cluster.now) {
            let timed = cluster.deadlines.contains(due, deadline);
            ensure!(timed, "{id}: {deadline:?} at {due} is not set");
        }
    }
    Ok(())
}

fn check_worker(cluster: &Cluster, id: WorkerId) -> Result<(), String> {
    let worker = &cluster.workers[&id];
    let mine: Vec<AttemptId> = cluster
        .attempts
        .values()
        .filter(|one| one.worker == id)
        .map(|one| one.id)
        .collect();
    ensure!(
        worker.attempts().eq(mine.iter().copied()),
        "{id}: its list of attempts differs from the attempts placed on it"
    );
    ensure!(
        worker.state() != WorkerState::Unknown,
        "{id}: registered, but in state Unknown"
    );
    let draining = cluster.departures.draining().contains(&id);
    ensure!(
        draining == (worker.state() == WorkerState::Draining),
        "{id}: state and list of draining workers disagree"
    );
    let stopped = mine
        .iter()
        .filter(|one| cluster.attempts[one].state.is_stopped())
        .count() as u32;
    ensure!(
        worker.stopped() == stopped,
        "{id}: {} stopped attempts counted (expected {stopped})",
        worker.stopped()
    );
    if !worker.takes_attempts() {
        ensure!(
            worker.reservations().is_empty(),
            "{id}: has reservations, but takes no attempts"
        );
    }
    if worker.state() != WorkerState::Up {
        for one in &mine {
            let attempt = &cluster.attempts[one];
            // One that must finish a unit of work first saves its work in a slot of the draining worker.
            let leaves = worker.state() == WorkerState::Draining && attempt.saving.is_some();
            let is_stuck = attempt.state == AttemptState::Suspended && !leaves;
            ensure!(
                !is_stuck,
                "{id}: has the suspended attempt {one}, but is not up"
            );
        }
    }
    let excluded = worker
        .excluded_until()
        .is_some_and(|until| cluster.quarantine.excluded().contains(&(until, id)));
    ensure!(
        excluded == worker.excluded_until().is_some(),
        "{id}: excluded, but missing from the list of excluded workers"
    );
    ensure!(
        !excluded || worker.state() == WorkerState::Up,
        "{id}: {:?}, but excluded",
        worker.state()
    );
    ensure!(
        !excluded || worker.excluded_until() > Some(cluster.now),
        "{id}: still excluded after its exclusion ended"
    );
    for task in worker.health().suspected() {
        let job = cluster.jobs.get(&task.job);
        let failed = job
            .and_then(|job| job.task(task))
            .is_some_and(|task| task.faults.failed_on.contains(&id));
        ensure!(
            failed,
            "{id}: suspected for {task}, which did not fail there"
        );
    }
    let saves = worker.saves_until().filter(|until| *until > cluster.now);
    let timed = saves.is_none_or(|until| cluster.deadlines.contains(until, Deadline::Drained(id)));
    ensure!(timed, "{id}: saves its work without a deadline");
    ensure!(
        worker.saves_until().is_none() || draining,
        "{id}: saves its work, but is not draining"
    );
    ensure!(
        worker.is_cleared() == (cluster.quarantine.cleared() == Some(id)),
        "{id}: its cleared flag and the quarantine disagree"
    );
    if worker.state() == WorkerState::Lost {
        ensure!(mine.is_empty(), "{id}: lost, but has attempts");
        ensure!(
            cluster.departures.lost().contains(&id) || worker.has_left(),
            "{id}: lost, but missing from the list of lost workers"
        );
    }
    ensure!(
        !cluster.departures.is_forgotten(id),
        "{id}: registered, but also listed as forgotten"
    );
    for kind in TaskKind::ALL {
        let holds = |one: &&AttemptId| one.task.kind == kind && cluster.attempts[one].holds_slot;
        let used = mine.iter().filter(holds).count() as u32;
        ensure!(
            worker.used(kind) == used,
            "{id}: {} used {kind} slots counted (expected {used})",
            worker.used(kind)
        );
        let taken = worker.taken(kind);
        ensure!(
            taken <= worker.slots(kind),
            "{id}: {taken} {kind} slots held (limit {})",
            worker.slots(kind)
        );
        ensure!(
            worker.reserved(kind) <= worker.free(kind),
            "{id}: more {kind} slots are reserved than free"
        );
        let listed = cluster
            .slots
            .free(kind)
            .contains(&(Reverse(worker.free(kind)), id));
        let free = worker.takes_attempts() && worker.free(kind) > 0;
        ensure!(
            listed == free,
            "{id}: listed with free {kind} slots: {listed} (expected {free})"
        );
    }
    for kept in worker.reservations() {
        let job = cluster.jobs.get(&kept.job);
        let wanted = job.is_some_and(|job| {
            job.wants_on(kept.kind, id) && job.slots.reserved_on().contains(&id)
        });
        ensure!(
            wanted,
            "{id}: a {} slot is reserved for {}, which does not want it",
            kept.kind,
            kept.job
        );
        let timed = cluster
            .deadlines
            .contains(kept.until, Deadline::Reservation(id));
        ensure!(
            timed && kept.until > cluster.now,
            "{id}: a reservation without a deadline"
        );
    }
    Ok(())
}

fn check_attempt(cluster: &Cluster, id: AttemptId) -> Result<(), String> {
    let attempt = &cluster.attempts[&id];
    let job = cluster
        .jobs
        .get(&id.task.job)
        .ok_or_else(|| format!("{id}: its job has ended"))?;
    let task = job
        .task(id.task)
        .ok_or_else(|| format!("{id}: its job does not have the task"))?;
    let current = task.live.contains(&id.number);
    ensure!(
        current != attempt.superseded,
        "{id}: live according to its task: {current}, superseded: {}",
        attempt.superseded
    );
    ensure!(
        !attempt.superseded || attempt.state == AttemptState::Killing,
        "{id}: superseded, but not being killed"
    );
    let able = matches!(
        attempt.state,
        AttemptState::Running | AttemptState::Checkpointing
    );
    ensure!(
        !able || !attempt.wants_commit || task.committer.is_some(),
        "{id}: waits for a commit grant, but no attempt holds it"
    );
    ensure!(
        (1..=task.launched).contains(&id.number),
        "{id}: its number exceeds the launches of its task"
    );
    ensure!(
        job.live.contains(&id),
        "{id}: missing from the live attempts of its job"
    );
    ensure!(
        !matches!(attempt.state, AttemptState::Finished(_)),
        "{id}: finished, but not removed"
    );
    if attempt.state != AttemptState::Killing && !attempt.is_converting() {
        ensure!(
            attempt.holds_slot == attempt.state.holds_slot(),
            "{id}: slot and state disagree"
        );
    }
    if attempt.state != AttemptState::Killing {
        ensure!(
            job.state == JobState::Active,
            "{id}: its job is stopping, but it is not being killed"
        );
    }
    let suspended = job.suspended[id.task.kind].contains(&(attempt.worker, id));
    let waits =
        attempt.state == AttemptState::Suspended && !attempt.is_held() && job.pause.is_none();
    ensure!(
        suspended == waits,
        "{id}: listed as waiting for a slot: {suspended} (expected {waits})"
    );
    let recalled = cluster.suspended.recalled().contains(&id);
    let saves = attempt.state == AttemptState::Suspended && attempt.saving.is_some();
    let gets_slot = saves || (waits && attempt.is_recalled());
    ensure!(
        recalled == gets_slot,
        "{id}: wrongly listed as getting the next slot"
    );
    ensure!(
        !attempt.is_converting() || !attempt.is_at_work,
        "{id}: works without a slot"
    );
    ensure!(
        !attempt.is_held() || task.held.is_some() || attempt.superseded,
        "{id}: held, but its task is not"
    );
    ensure!(
        attempt.waits_since.is_none() || waits,
        "{id}: has a start of waiting, but does not wait for a slot"
    );
    if task.committer == Some(id.number) {
        let asked = attempt.wants_commit && job.commits(id.task.kind);
        ensure!(asked, "{id}: was granted a commit without a request");
        let stopped = matches!(
            attempt.state,
            AttemptState::Suspending | AttemptState::Suspended | AttemptState::Resuming
        );
        ensure!(!stopped, "{id}: holds a commit grant across a suspend");
    }
    Ok(())
}

fn check_job(cluster: &Cluster, job: &Job) -> Result<(), String> {
    let id = job.id;
    ensure!(job.state != JobState::Ended, "{id}: ended, but not removed");
    ensure!(
        !cluster.ended.contains(id.0),
        "{id}: active, but also listed as ended"
    );
    ensure!(
        job.outcome.is_some() == (job.state == JobState::Stopping),
        "{id}: outcome and state disagree"
    );
    let complete_or_empty = job.state == JobState::Stopping && job.live.is_empty();
    ensure!(
        !complete_or_empty,
        "{id}: stopping without live attempts, but not ended"
    );
    ensure!(
        job.state == JobState::Stopping || !job.is_complete(),
        "{id}: complete, but active"
    );
    let alive = job
        .live
        .iter()
        .all(|attempt| cluster.attempts.contains_key(attempt));
    ensure!(alive, "{id}: one of its live attempts does not exist");
    let waiting = job
        .awaiting_inputs
        .iter()
        .all(|one| job.live.contains(one) && one.task.kind == TaskKind::Reduce);
    ensure!(
        waiting,
        "{id}: an attempt that is not a live reduce awaits inputs"
    );
    let maps = &job.phases.map.tasks;
    let lost = maps.iter().filter(|task| task.lost).count() as u32;
    ensure!(
        job.outputs.lost() == lost,
        "{id}: {} lost maps counted (expected {lost})",
        job.outputs.lost()
    );
    let held = job.outputs.held().len();
    ensure!(
        held == maps.iter().filter(|task| task.output.is_some()).count(),
        "{id}: wrong count of outputs"
    );
    for kind in TaskKind::ALL {
        check_phase(cluster, job, kind)?;
        let key = (Reverse(job.spec.priority), job.submitted, id);
        let listed = cluster.demand.wants(kind, key);
        ensure!(
            listed == job.wants(kind),
            "{id}: demand for {kind} slots and its index disagree"
        );
        let listed = cluster.demand.speculable(kind).contains(&id);
        ensure!(
            listed == job.may_have_stragglers(kind),
            "{id}: wrongly listed for {kind} stragglers"
        );
        let of = |request: &&PreemptRequest| request.attempt.task.kind == kind;
        let requests = cluster.requests.iter().filter(of);
        let victims = requests
            .clone()
            .filter(|request| request.attempt.task.job == id)
            .count() as u32;
        let for_it = requests
            .filter(|request| request.beneficiary == Some(id))
            .count();
        let kept = cluster.workers.values().flat_map(Worker::reservations);
        let kept = kept
            .filter(|kept| kept.job == id && kept.kind == kind)
            .count();
        ensure!(
            job.slots.requested(kind) == victims,
            "{id}: {} requested {kind} slots counted (expected {victims})",
            job.slots.requested(kind)
        );
        ensure!(
            job.slots.promised(kind) as usize == for_it + kept,
            "{id}: {} promised {kind} slots counted (expected {for_it} + {kept})",
            job.slots.promised(kind)
        );
        let holding = job
            .live
            .iter()
            .filter(|one| one.task.kind == kind && cluster.attempts[one].holds_slot);
        ensure!(
            job.slots.held(kind) == holding.count() as u32,
            "{id}: wrong count of held {kind} slots"
        );
    }
    Ok(())
}

fn check_phase(cluster: &Cluster, job: &Job, kind: TaskKind) -> Result<(), String> {
    let phase = &job.phases[kind];
    let done = phase
        .tasks
        .iter()
        .filter(|task| task.state == TaskState::Done)
        .count() as u32;
    ensure!(
        phase.done == done,
        "{}: {} done {kind} tasks counted (expected {done})",
        job.id,
        phase.done
    );
    let marked = (0..).zip(&phase.tasks);
    let marked = marked.filter(|(_, task)| task.state == TaskState::Pending && task.held.is_none());
    let marked = marked.filter_map(|(index, task)| Some((task.checkpoint_made?.1, index)));
    let marked: SortedSet<_> = marked.collect();
    ensure!(
        phase.checkpointed == marked,
        "{}: wrong index of {kind} tasks with a checkpoint",
        job.id
    );
    ensure!(
        phase.sums == phase.sums_of_work(),
        "{}: wrong sums of {kind} work",
        job.id
    );
    let local_is_pending = phase
        .local
        .values()
        .flatten()
        .all(|index| phase.pending.contains(*index));
    ensure!(
        local_is_pending,
        "{}: a {kind} task is listed as local, but is not pending",
        job.id
    );
    let usable = cluster.usable(kind);
    ensure!(
        phase.shunned == phase.shunned_among(&usable),
        "{}: {kind}s avoid the wrong workers",
        job.id
    );
    for end in phase.avoidance_ends() {
        let timed = cluster
            .deadlines
            .contains(end, Deadline::AvoidanceOver(job.id));
        ensure!(
            timed,
            "{}: {kind}s avoid a worker without a deadline",
            job.id
        );
    }
    for (index, task) in (0..).zip(&phase.tasks) {
        let kept_from = phase
            .avoided
            .iter()
            .filter(|(_, tasks)| tasks.contains(&index))
            .map(|(id, _)| *id);
        let avoided = phase.workers_avoided_by(index, &usable);
        ensure!(
            kept_from.eq(avoided),
            "{}: {kind} {index} avoids the wrong workers",
            job.id
        );
        let has_faults = !task.faults.failed_on.is_empty();
        ensure!(
            phase.failed.contains(&index) == has_faults,
            "{}: {kind} {index} failed, unlisted",
            job.id
        );
        let id = TaskId {
            job: job.id,
            kind,
            index,
        };
        let mut live = task
            .live
            .iter()
            .map(|&number| AttemptId { task: id, number });
        ensure!(
            live.all(|live| cluster.attempts.contains_key(&live)),
            "{id}: its live attempt does not exist"
        );
        let fits = if task.state == TaskState::Active {
            1..=2
        } else {
            0..=0
        };
        ensure!(
            fits.contains(&task.live.len()),
            "{id}: {:?} with live attempts {:?}",
            task.state,
            task.live
        );
        let pending = phase.pending.contains(index);
        let held = phase.held.contains(&index);
        let waits = task.state == TaskState::Pending;
        ensure!(
            pending == (waits && task.held.is_none()),
            "{id}: {:?}, pending: {pending}",
            task.state
        );
        ensure!(
            held == (waits && task.held.is_some()),
            "{id}: {:?}, held: {held}",
            task.state
        );
        let mut live = task
            .live
            .iter()
            .map(|&number| AttemptId { task: id, number });
        let by_attempt = live.any(|live| {
            cluster
                .attempts
                .get(&live)
                .is_some_and(|live| live.is_held())
        });
        ensure!(
            task.held.is_none() || held || by_attempt,
            "{id}: held, but no attempt is held"
        );
        let done = task.state == TaskState::Done;
        ensure!(
            task.output.is_some() == (done && !job.commits(kind)),
            "{id}: output and state disagree"
        );
        ensure!(
            !task.lost || (!done && !job.commits(kind)),
            "{id}: {:?}, but its output is lost",
            task.state
        );
        let keeps_right = task
            .committer
            .is_none_or(|number| done || task.live.contains(&number));
        ensure!(
            keeps_right,
            "{id}: the commit grant belongs to an attempt that does not exist"
        );
        ensure!(
            !done || !job.commits(kind) || task.committer.is_some(),
            "{id}: done without a commit"
        );
        if let Some((_, worker)) = task.output {
            let there = worker == WorkerId::STORAGE
                || cluster.workers[&worker].state() != WorkerState::Lost;
            ensure!(
                there || job.state == JobState::Stopping,
                "{id}: its output is on a lost worker"
            );
            let indexed = job.outputs.held().contains(&(worker, index));
            ensure!(indexed, "{id}: its output is not indexed");
        }
        ensure!(
            job.state == JobState::Stopping
                || task.faults.failures.len() < job.spec.attempts_max as usize,
            "{id}: exceeded attempts_max, but its job is active"
        );
    }
    Ok(())
}

/// Recomputes the maintained sums and compares them.
fn check_totals(cluster: &Cluster, kind: TaskKind) -> Result<(), String> {
    let usable = cluster.workers.values().filter(|one| one.takes_attempts());
    let (slots, free) = usable.fold((0, 0), |(slots, free), one| {
        (
            slots + u64::from(one.slots(kind)),
            free + u64::from(one.free(kind)),
        )
    });
    let total = cluster.slots.total(kind);
    ensure!(
        total == slots,
        "{total} {kind} slots counted (expected {slots})"
    );
    let total_free = cluster.slots.total_free(kind);
    ensure!(
        total_free == free,
        "{total_free} free {kind} slots counted (expected {free})"
    );
    let held = cluster
        .attempts
        .values()
        .filter(|one| one.id.task.kind == kind && one.holds_slot)
        .count();
    let counted = cluster.slots.held()[kind];
    ensure!(
        counted as usize == held,
        "{counted} held {kind} slots counted (expected {held})"
    );
    let freeing = cluster
        .requests
        .iter()
        .filter(|one| one.attempt.task.kind == kind)
        .count();
    ensure!(
        cluster.requests.count(kind) as usize == freeing,
        "wrong count of {kind} slots being freed (expected {freeing})"
    );
    let launchable = cluster
        .jobs
        .values()
        .filter(|job| job.eligible_count(kind) > 0)
        .count();
    ensure!(
        cluster.demand.launchable(kind) as usize == launchable,
        "wrong count of jobs with {kind}s to launch (expected {launchable})"
    );
    let mut suspended = SortedMap::new();
    for (worker, _) in cluster.jobs.values().flat_map(|job| &job.suspended[kind]) {
        *suspended.get_or_default(*worker) += 1;
    }
    ensure!(
        *cluster.suspended.counts(kind) == suspended,
        "wrong count of suspended {kind}s"
    );
    Ok(())
}

fn check_indices(cluster: &Cluster) -> Result<(), String> {
    for (due, deadline) in cluster.deadlines.iter() {
        let known = match deadline {
            Deadline::Grace(attempt) => {
                let request = cluster.requests.get(&attempt);
                request
                    .is_some_and(|one| one.grace.is_some_and(|grace| one.begins() + grace == due))
            }
            Deadline::Earliest(attempt) => cluster
                .requests
                .get(&attempt)
                .is_some_and(|one| one.earliest == Some(due)),
            Deadline::Overdue(attempt) => cluster
                .requests
                .get(&attempt)
                .is_some_and(|one| one.overdue() == Some(due)),
            Deadline::Excluded(worker) => cluster.quarantine.excluded().contains(&(due, worker)),
            Deadline::AvoidanceOver(job) => cluster.jobs.get(&job).is_some_and(|job| {
                TaskKind::ALL
                    .iter()
                    .any(|kind| job.phases[*kind].avoidance_ends().any(|end| end == due))
            }),
            Deadline::Drained(worker) => cluster.workers[&worker].saves_until() == Some(due),
            Deadline::Reservation(worker) => cluster.workers[&worker]
                .reservations()
                .iter()
                .any(|kept| kept.until == due),
        };
        ensure!(known, "{deadline:?} at {due} has no subject");
    }
    let excluded = cluster
        .workers
        .values()
        .filter(|worker| worker.excluded_until().is_some())
        .count();
    ensure!(
        excluded == cluster.quarantine.excluded().len()
            && cluster.one_too_many_excluded().is_none(),
        "wrong list of excluded workers (expected {excluded})"
    );
    let timed = cluster
        .quarantine
        .excluded()
        .iter()
        .all(|&(until, id)| cluster.deadlines.contains(until, Deadline::Excluded(id)));
    ensure!(timed, "a worker is excluded without a deadline");
    for kind in TaskKind::ALL {
        let known = cluster
            .demand
            .wanting(kind)
            .all(|job| cluster.jobs.contains_key(&job));
        let known = known
            && cluster
                .demand
                .speculable(kind)
                .iter()
                .all(|job| cluster.jobs.contains_key(job));
        ensure!(
            known,
            "an ended job is listed as wanting a {kind} slot or having stragglers"
        );
        let workers = cluster.workers.values();
        let free = workers
            .filter(|one| one.takes_attempts() && one.free(kind) > 0)
            .count();
        ensure!(
            free == cluster.slots.free(kind).len(),
            "free {kind} slots are listed twice"
        );
        check_totals(cluster, kind)?;
    }
    Ok(())
}
