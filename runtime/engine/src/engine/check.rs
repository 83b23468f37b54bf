//! All invariants of the engine that hold between events, checked from scratch. For tests and simulators: it
//! visits all state.

use std::cmp::Reverse;

use crate::cluster::{Cluster, Deadline, Job, Worker};
use crate::engine::Engine;
use crate::ids::{AttemptId, TaskId, TaskKind, WorkerId};
use crate::preemption::PreemptRequest;
use crate::states::{AttemptState, JobState, TaskState, WorkerState};

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
    /// # Errors Names the thing and the violated invariant. That is always a bug in this crate.
    pub fn check(&self) -> Result<(), String> {
        let cluster = &self.cluster;
        ensure!(self.effects.is_empty(), "effects are left over from the last event");
        cluster.workers.keys().try_for_each(|id| check_worker(cluster, id))?;
        cluster.attempts.keys().try_for_each(|id| check_attempt(cluster, id))?;
        cluster.jobs.values().try_for_each(|job| check_job(cluster, job))?;
        cluster.check_racks()?;
        self.check_limits()?;
        self.check_requests()?;
        check_indices(cluster)
    }
}

fn check_worker(cluster: &Cluster, id: WorkerId) -> Result<(), String> {
    let worker = &cluster.workers[&id];
    let mine: Vec<AttemptId> =
        cluster.attempts.values().filter(|one| one.worker == id).map(|one| one.id).collect();
    ensure!(worker.attempts().eq(mine.iter().copied()), "{id}: its attempts differ from the attempts on it");
    ensure!(worker.state() != WorkerState::Unknown, "{id}: known, but unknown");
    let draining = cluster.departures.draining().contains(&id);
    ensure!(
        draining == (worker.state() == WorkerState::Draining),
        "{id}: draining, but not listed, or the reverse"
    );
    let stopped = mine.iter().filter(|one| cluster.attempts[one].state.is_stopped()).count() as u32;
    ensure!(worker.stopped() == stopped, "{id}: {} stopped by count, {stopped} are", worker.stopped());
    if !worker.takes_attempts() {
        ensure!(worker.reservations().is_empty(), "{id}: keeps slots that nobody can use");
    }
    if worker.state() != WorkerState::Up {
        let stuck = mine.iter().any(|one| cluster.attempts[one].state == AttemptState::Suspended);
        ensure!(!stuck, "{id}: an attempt is suspended where nothing is resumed");
    }
    let excluded =
        worker.excluded_until().is_some_and(|until| cluster.quarantine.excluded().contains(&(until, id)));
    ensure!(excluded == worker.excluded_until().is_some(), "{id}: excluded, but not listed");
    ensure!(!excluded || worker.state() == WorkerState::Up, "{id}: {:?}, but excluded", worker.state());
    ensure!(
        !excluded || worker.excluded_until() > Some(cluster.now),
        "{id}: excluded for longer than it should be"
    );
    let timed = |until| cluster.deadlines.contains(until, Deadline::ShortageOver(id));
    let timed = worker.health().shortage().is_none_or(|shortage| timed(shortage.until));
    ensure!(timed, "{id}: shortage for ever");
    let saves = worker.saves_until().filter(|until| *until > cluster.now);
    let timed = saves.is_none_or(|until| cluster.deadlines.contains(until, Deadline::Drained(id)));
    ensure!(timed, "{id}: saves its work for ever");
    ensure!(worker.saves_until().is_none() || draining, "{id}: is to save its work, but stays");
    ensure!(
        worker.is_cleared() == (cluster.quarantine.cleared() == Some(id)),
        "{id}: kept free for a task, or the reverse"
    );
    if worker.state() == WorkerState::Lost {
        ensure!(mine.is_empty(), "{id}: lost, but not empty");
        ensure!(cluster.departures.lost().contains(&id) || worker.has_left(), "{id}: lost, but not listed");
    }
    ensure!(!cluster.departures.is_forgotten(id), "{id}: both there and no more");
    for kind in TaskKind::ALL {
        let holds = |one: &&AttemptId| one.task.kind == kind && cluster.attempts[one].holds_slot;
        let used = mine.iter().filter(holds).count() as u32;
        ensure!(worker.used(kind) == used, "{id}: {} {kind} slots used, {used} held", worker.used(kind));
        let taken = worker.taken(kind);
        ensure!(taken <= worker.slots(kind), "{id}: {taken} of {} {kind} slots held", worker.slots(kind));
        ensure!(worker.reserved(kind) <= worker.free(kind), "{id}: more {kind} slots reserved than free");
        let listed = cluster.slots.free(kind).contains(&(Reverse(worker.free(kind)), id));
        let free = worker.takes_attempts() && worker.free(kind) > 0;
        ensure!(listed == free, "{id}: free {kind} slots listed: {listed}, there: {free}");
    }
    for kept in worker.reservations() {
        let job = cluster.jobs.get(&kept.job);
        let wanted =
            job.is_some_and(|job| job.wants_on(kept.kind, id) && job.slots.reserved_on().contains(&id));
        ensure!(wanted, "{id}: a {} slot is kept for {}, which does not want it", kept.kind, kept.job);
        let timed = cluster.deadlines.contains(kept.until, Deadline::Reservation(id));
        ensure!(timed && kept.until > cluster.now, "{id}: a reservation without a deadline");
    }
    Ok(())
}

fn check_attempt(cluster: &Cluster, id: AttemptId) -> Result<(), String> {
    let attempt = &cluster.attempts[&id];
    let job = cluster.jobs.get(&id.task.job).ok_or_else(|| format!("{id}: its job is over"))?;
    let task = job.task(id.task).ok_or_else(|| format!("{id}: its job has no such task"))?;
    let current = task.live.contains(&id.number);
    ensure!(
        current != attempt.superseded,
        "{id}: live by its task: {current}, superseded: {}",
        attempt.superseded
    );
    ensure!(!attempt.superseded || attempt.state == AttemptState::Killing, "{id}: superseded, but goes on");
    let able = matches!(attempt.state, AttemptState::Running | AttemptState::Checkpointing);
    ensure!(!able || !attempt.wants_commit || task.committer.is_some(), "{id}: waits for a right nobody has");
    ensure!((1..=task.launched).contains(&id.number), "{id}: numbered above the last launch");
    ensure!(job.live.contains(&id), "{id}: unknown to its job");
    ensure!(!matches!(attempt.state, AttemptState::Finished(_)), "{id}: finished, but kept");
    if attempt.state != AttemptState::Killing && !attempt.is_converting() {
        ensure!(attempt.holds_slot == attempt.state.holds_slot(), "{id}: slot and state disagree");
    }
    if attempt.state != AttemptState::Killing {
        ensure!(job.state == JobState::Active, "{id}: its job is stopping and it is not being killed");
    }
    let suspended = job.suspended[id.task.kind].contains(&(attempt.worker, id));
    let waits = attempt.state == AttemptState::Suspended && !attempt.is_held() && job.pause.is_none();
    ensure!(suspended == waits, "{id}: waits for a slot: {waits}, listed: {suspended}");
    let recalled = cluster.suspended.recalled().contains(&id);
    ensure!(recalled == (waits && attempt.is_recalled()), "{id}: wrongly listed as wanted by an operator");
    ensure!(
        !attempt.is_held() || task.held.is_some() || attempt.superseded,
        "{id}: held, but its task is not"
    );
    ensure!(attempt.waits_since.is_none() || waits, "{id}: waits for a slot since a time, but does not");
    if task.committer == Some(id.number) {
        let asked = attempt.wants_commit && job.commits(id.task.kind);
        ensure!(asked, "{id}: was granted a commit that it did not ask for");
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
    ensure!(job.state != JobState::Ended, "{id}: over, but kept");
    ensure!(!cluster.ended.contains(id.0), "{id}: both over and not");
    ensure!(job.outcome.is_some() == (job.state == JobState::Stopping), "{id}: outcome and state disagree");
    let complete_or_empty = job.state == JobState::Stopping && job.live.is_empty();
    ensure!(!complete_or_empty, "{id}: stopping with nothing left, but not ended");
    ensure!(job.state == JobState::Stopping || !job.is_complete(), "{id}: complete, but active");
    let alive = job.live.iter().all(|attempt| cluster.attempts.contains_key(attempt));
    ensure!(alive, "{id}: an attempt of it is gone");
    let waiting =
        job.awaiting_inputs.iter().all(|one| job.live.contains(one) && one.task.kind == TaskKind::Reduce);
    ensure!(waiting, "{id}: a reduce that is gone awaits inputs");
    let maps = &job.phases.map.tasks;
    let lost = maps.iter().filter(|task| task.lost).count() as u32;
    ensure!(job.outputs.lost() == lost, "{id}: {} maps lost by count, {lost} by task", job.outputs.lost());
    let held = job.outputs.held().len();
    ensure!(held == maps.iter().filter(|task| task.output.is_some()).count(), "{id}: outputs miscounted");
    for kind in TaskKind::ALL {
        check_phase(cluster, job, kind)?;
        let key = (Reverse(job.spec.priority), job.submitted, id);
        let listed = cluster.demand.wants(kind, key);
        ensure!(listed == job.wants(kind), "{id}: wants a {kind} slot and is not listed, or the reverse");
        let listed = cluster.demand.speculable(kind).contains(&id);
        ensure!(listed == job.may_have_stragglers(kind), "{id}: wrongly listed for {kind} stragglers");
        let of = |request: &&PreemptRequest| request.attempt.task.kind == kind;
        let requests = cluster.requests.iter().filter(of);
        let victims = requests.clone().filter(|request| request.attempt.task.job == id).count() as u32;
        let for_it = requests.filter(|request| request.beneficiary == Some(id)).count();
        let kept = cluster.workers.values().flat_map(Worker::reservations);
        let kept = kept.filter(|kept| kept.job == id && kept.kind == kind).count();
        ensure!(
            job.slots.requested(kind) == victims,
            "{id}: {} {kind} slots wanted back, {victims} asked for",
            job.slots.requested(kind)
        );
        ensure!(
            job.slots.promised(kind) as usize == for_it + kept,
            "{id}: {} {kind} slots promised, {for_it} + {kept} by count",
            job.slots.promised(kind)
        );
        let holding = job.live.iter().filter(|one| one.task.kind == kind && cluster.attempts[one].holds_slot);
        ensure!(job.slots.held(kind) == holding.count() as u32, "{id}: {kind} slots held are miscounted");
    }
    Ok(())
}

fn check_phase(cluster: &Cluster, job: &Job, kind: TaskKind) -> Result<(), String> {
    let phase = &job.phases[kind];
    let done = phase.tasks.iter().filter(|task| task.state == TaskState::Done).count() as u32;
    ensure!(phase.done == done, "{}: {} {kind} tasks done by count, {done} by state", job.id, phase.done);
    let marked = (0..).zip(&phase.tasks);
    let marked = marked.filter(|(_, task)| task.state == TaskState::Pending && task.held.is_none());
    let marked = marked.filter_map(|(index, task)| Some((task.checkpoint_made?.1, index)));
    let marked: std::collections::BTreeSet<_> = marked.collect();
    ensure!(phase.checkpointed == marked, "{}: {kind} tasks with a checkpoint are miscounted", job.id);
    ensure!(phase.worked == phase.sum_of_work(), "{}: {kind} work is miscounted", job.id);
    let local_is_pending = phase.local.values().flatten().all(|index| phase.pending.contains(*index));
    ensure!(local_is_pending, "{}: a {kind} task is listed as local, but is not pending", job.id);
    let usable = cluster.usable(kind);
    for (index, task) in (0..).zip(&phase.tasks) {
        let elsewhere = usable.difference(&task.faults.failed_on).next().is_some();
        let kept_from = phase.avoided.iter().filter(|(_, tasks)| tasks.contains(&index)).map(|(id, _)| id);
        let avoided = task.faults.failed_on.iter().filter(|_| elsewhere && phase.failed.contains(&index));
        ensure!(kept_from.eq(avoided), "{}: {kind} {index} is kept from the wrong workers", job.id);
        let id = TaskId { job: job.id, kind, index };
        let mut live = task.live.iter().map(|&number| AttemptId { task: id, number });
        ensure!(live.all(|live| cluster.attempts.contains_key(&live)), "{id}: its live attempt is gone");
        let fits = if task.state == TaskState::Active { 1..=2 } else { 0..=0 };
        ensure!(fits.contains(&task.live.len()), "{id}: {:?} with {:?}", task.state, task.live);
        let (pending, held) = (phase.pending.contains(index), phase.held.contains(&index));
        let waits = task.state == TaskState::Pending;
        ensure!(pending == (waits && task.held.is_none()), "{id}: {:?}, pending: {pending}", task.state);
        ensure!(held == (waits && task.held.is_some()), "{id}: {:?}, held: {held}", task.state);
        let mut live = task.live.iter().map(|&number| AttemptId { task: id, number });
        let by_attempt = live.any(|live| cluster.attempts.get(&live).is_some_and(|live| live.is_held()));
        ensure!(task.held.is_none() || held || by_attempt, "{id}: held, but none of its attempts is");
        let done = task.state == TaskState::Done;
        ensure!(task.output.is_some() == (done && !job.commits(kind)), "{id}: output and state disagree");
        ensure!(
            !task.lost || (!done && !job.commits(kind)),
            "{id}: {:?}, but its output is lost",
            task.state
        );
        let keeps_right = task.committer.is_none_or(|number| done || task.live.contains(&number));
        ensure!(keeps_right, "{id}: the right to commit is with an attempt that is gone");
        ensure!(!done || !job.commits(kind) || task.committer.is_some(), "{id}: done without a commit");
        if let Some((_, worker)) = task.output {
            let there = worker == WorkerId::STORAGE || cluster.workers[&worker].state() != WorkerState::Lost;
            ensure!(there || job.state == JobState::Stopping, "{id}: its output is on a lost worker");
            let indexed = job.outputs.held().contains(&(worker, index));
            ensure!(indexed, "{id}: its output is not indexed");
        }
        ensure!(
            job.state == JobState::Stopping || task.faults.failures.len() < job.spec.attempts_max as usize,
            "{id}: failed too often, but its job goes on"
        );
    }
    Ok(())
}

impl Engine {
    fn check_limits(&self) -> Result<(), String> {
        let most = self.settings.preemption.suspended_max;
        for (id, worker) in self.cluster.workers.iter() {
            let full = most.is_full(worker.is_full(), worker.stopped());
            ensure!(
                worker.is_full() == full,
                "{id}: {} of {most} suspended, full: {}",
                worker.stopped(),
                worker.is_full()
            );
        }
        Ok(())
    }

    fn check_requests(&self) -> Result<(), String> {
        let cluster = &self.cluster;
        for request in cluster.requests.iter() {
            let id = request.attempt;
            ensure!(cluster.attempts.contains_key(&id), "{id}: a request for nothing");
            let useful = request
                .beneficiary
                .is_none_or(|job| cluster.jobs.get(&job).is_some_and(|job| job.state == JobState::Active));
            ensure!(useful, "{id}: preempted for a job that is over");
            for (due, deadline) in self.deadlines_of(request).filter(|(due, _)| *due > cluster.now) {
                let timed = cluster.deadlines.contains(due, deadline);
                ensure!(timed, "{id}: {deadline:?} at {due} is not set");
            }
        }
        Ok(())
    }
}

/// Recomputes the maintained sums and compares them.
fn check_totals(cluster: &Cluster, kind: TaskKind) -> Result<(), String> {
    let usable = cluster.workers.values().filter(|one| one.takes_attempts());
    let (slots, free) = usable.fold((0, 0), |(slots, free), one| {
        (slots + u64::from(one.slots(kind)), free + u64::from(one.free(kind)))
    });
    let total = cluster.slots.total(kind);
    ensure!(total == slots, "{total} {kind} slots by count, {slots} there");
    let total_free = cluster.slots.total_free(kind);
    ensure!(total_free == free, "{total_free} {kind} slots free by count, {free} are");
    let held = cluster.attempts.values().filter(|one| one.id.task.kind == kind && one.holds_slot).count();
    let counted = cluster.slots.held()[kind];
    ensure!(counted as usize == held, "{counted} {kind} slots held by count, {held} are");
    let freeing = cluster.requests.iter().filter(|one| one.attempt.task.kind == kind).count();
    ensure!(
        cluster.requests.count(kind) as usize == freeing,
        "{freeing} {kind} slots are being freed, miscounted"
    );
    let launchable = cluster.jobs.values().filter(|job| job.eligible_count(kind) > 0).count();
    ensure!(
        cluster.demand.launchable(kind) as usize == launchable,
        "{launchable} jobs have {kind}s to launch, miscounted"
    );
    let mut suspended = std::collections::BTreeMap::new();
    for (worker, _) in cluster.jobs.values().flat_map(|job| &job.suspended[kind]) {
        *suspended.entry(*worker).or_insert(0) += 1;
    }
    ensure!(*cluster.suspended.counts(kind) == suspended, "suspended {kind}s are miscounted");
    Ok(())
}

fn check_indices(cluster: &Cluster) -> Result<(), String> {
    for (due, deadline) in cluster.deadlines.iter() {
        let known = match deadline {
            Deadline::Grace(attempt) => {
                let request = cluster.requests.get(&attempt);
                request.is_some_and(|one| one.grace.is_some_and(|grace| one.begins() + grace == due))
            }
            Deadline::Earliest(attempt) => {
                cluster.requests.get(&attempt).is_some_and(|one| one.earliest == Some(due))
            }
            Deadline::Overdue(attempt) => {
                cluster.requests.get(&attempt).is_some_and(|one| one.overdue() == Some(due))
            }
            Deadline::Excluded(worker) => cluster.quarantine.excluded().contains(&(due, worker)),
            Deadline::ShortageOver(worker) => {
                cluster.workers[&worker].health().shortage().is_some_and(|shortage| shortage.until == due)
            }
            Deadline::Drained(worker) => cluster.workers[&worker].saves_until() == Some(due),
            Deadline::Reservation(worker) => {
                cluster.workers[&worker].reservations().iter().any(|kept| kept.until == due)
            }
        };
        ensure!(known, "{deadline:?} at {due} is about nothing");
    }
    let excluded = cluster.workers.values().filter(|worker| worker.excluded_until().is_some()).count();
    ensure!(
        excluded == cluster.quarantine.excluded().len() && cluster.one_too_many_excluded().is_none(),
        "{excluded} workers are excluded"
    );
    let timed = cluster
        .quarantine
        .excluded()
        .iter()
        .all(|&(until, id)| cluster.deadlines.contains(until, Deadline::Excluded(id)));
    ensure!(timed, "a worker is excluded for ever");
    for kind in TaskKind::ALL {
        let known = cluster.demand.wanting(kind).all(|job| cluster.jobs.contains_key(&job));
        let known = known && cluster.demand.speculable(kind).iter().all(|job| cluster.jobs.contains_key(job));
        ensure!(known, "a job that is over is listed as wanting a {kind} slot or having stragglers");
        let workers = cluster.workers.values();
        let free = workers.filter(|one| one.takes_attempts() && one.free(kind) > 0).count();
        ensure!(free == cluster.slots.free(kind).len(), "free {kind} slots are listed twice");
        check_totals(cluster, kind)?;
    }
    Ok(())
}
