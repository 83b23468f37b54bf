//! Tasks that may be what ends their workers: they run alone, so that it is known.
//!
//! Owns the suspicion, the worker that is kept free for such a task, and the end of one that is guilty. A
//! worker that dies takes the innocent with the guilty; so nothing follows from one death, and what was there
//! at two runs alone from then on, on another host if there is one. Only deaths of workers where it was alone
//! count. Does not own how it is known that a worker died.

use crate::cluster::Worker;
use crate::effect::Record;
use crate::engine::Engine;
use crate::ids::{AttemptId, TaskId, TaskKind, WorkerId};
use crate::job::JobOutcome;
use crate::states::{AttemptState, JobInput, JobState, TaskState, WorkerState};

/// So many deaths are remembered of a task.
const REMEMBERED_MAX: usize = 16;

impl Engine {
    /// A worker died with what it ran. Returns the tasks that were at work there; none of them has ended yet.
    pub(super) fn note_crash(&mut self, id: WorkerId) -> Vec<TaskId> {
        if self.settings.crashes_max == 0 {
            return Vec::new();
        }
        let host = self.cluster.host_of(id);
        let at_work: Vec<_> = self.at_work(id).collect();
        let alone = at_work.len() == 1;
        let mut tasks = Vec::new();
        for attempt in at_work {
            let known = &self.cluster.attempts[&attempt];
            if known.superseded || known.state == AttemptState::Killing {
                continue;
            }
            let task = self.cluster.task_mut(attempt.task);
            task.faults.lost_alone += u32::from(alone && task.is_isolated());
            if task.faults.lost_with.len() < REMEMBERED_MAX {
                task.faults.lost_with.push(host.clone());
            }
            tasks.push(attempt.task);
        }
        tasks
    }

    /// A task was there when a worker died: it runs alone from the second time on, and fails when workers
    /// died too often while it did.
    pub(super) fn suspect(&mut self, id: TaskId) {
        let active = self.cluster.jobs.get(&id.job).is_some_and(|job| job.state == JobState::Active);
        if !active {
            return;
        }
        let task = self.cluster.task_mut(id);
        if !task.is_isolated() || task.state == TaskState::Done {
            return;
        }
        let (deaths, alone) = (task.faults.lost_with.len(), task.faults.lost_alone);
        if alone >= self.settings.crashes_max && self.is_convicted(id) {
            let reason = format!(
                "each of {alone} workers died while it ran there alone, and {} before: it is taken to be what ends them",
                deaths.saturating_sub(alone as usize)
            );
            return self.fail_task(id, reason);
        }
        if self.cluster.job_mut(id.job).phases[id.kind].isolated.insert(id.index) {
            let reason = format!("{deaths} workers died while it ran there");
            self.record(Record::TaskIsolated { task: id, reason });
        }
        self.cluster.isolated.insert(id);
        self.cluster.refresh(id.job);
    }

    /// One host says nothing about a task while another one could run it.
    fn is_convicted(&mut self, id: TaskId) -> bool {
        let hosts = self.cluster.task_mut(id).faults.lost_with.clone();
        let elsewhere = |(worker, known): (WorkerId, &Worker)| {
            known.is_well() && known.slots[id.kind] > 0 && !hosts.contains(&self.cluster.host_of(worker))
        };
        hosts.iter().any(|host| *host != hosts[0]) || !self.cluster.workers.iter().any(elsewhere)
    }

    /// A task that is done has ended nobody.
    pub(super) fn clear_suspicion(&mut self, id: TaskId) {
        let task = self.cluster.task_mut(id);
        task.faults.lost_with.clear();
        task.faults.lost_alone = 0;
        self.cluster.job_mut(id.job).phases[id.kind].isolated.remove(&id.index);
        self.cluster.isolated.remove(&id);
    }

    /// Ends the job of a task that is not to be tried again.
    pub(super) fn fail_task(&mut self, id: TaskId, reason: String) {
        let reason = format!("{id} cannot be tried again: {reason}");
        self.decide(id.job, JobInput::Failed, JobOutcome::Failed { reason });
    }

    /// Starts a task that is to run alone, or keeps a worker free for it.
    pub(super) fn run_isolated(&mut self) {
        if self.cluster.isolated.is_empty() && self.cluster.cleared.is_none() {
            return;
        }
        let jobs = &self.cluster.jobs;
        let active = |id: &TaskId| jobs.get(&id.job).is_some_and(|job| job.state == JobState::Active);
        self.cluster.isolated.retain(active);
        let kept = self.cluster.cleared.filter(|id| self.cluster.workers[id].is_well());
        let alone = |one| self.cluster.isolated.contains(&one) && !self.waits_for_inputs(one);
        if kept.is_some_and(|id| self.at_work(id).any(|one| alone(one.task))) {
            return;
        }
        let next = self.next_isolated(kept);
        let worker = next.map(|(_, worker)| worker);
        if self.cluster.cleared != worker {
            let before = std::mem::replace(&mut self.cluster.cleared, worker);
            for id in before.into_iter().chain(worker) {
                self.cluster.worker_mut(id).cleared = Some(id) == worker;
                self.use_changed(id);
            }
        }
        let Some((task, worker)) = next else { return };
        // What waits for maps that cannot run meanwhile would wait for ever.
        let waiting: Vec<_> = self.at_work(worker).filter(|one| self.waits_for_inputs(one.task)).collect();
        for attempt in waiting {
            self.kill(attempt, format!("{worker} is kept for {task}, which runs alone"));
        }
        if self.at_work(worker).next().is_none() {
            let job = self.cluster.job(task.job);
            let (from, number) = (job.start_of(task), job.task(task).map_or(0, |task| task.launched) + 1);
            self.start(task, worker, from, None);
            // A duplicate would run beside others.
            self.cluster.attempt_mut(AttemptId { task, number }).duplicated = true;
        }
    }

    /// The first task that waits to run alone, and where: on the worker that is kept, or else the one that is
    /// free soonest, of a host where none died if there is one.
    fn next_isolated(&self, kept: Option<WorkerId>) -> Option<(TaskId, WorkerId)> {
        let cluster = &self.cluster;
        for id in &cluster.isolated {
            let job = cluster.job(id.job);
            let Some(task) =
                job.task(*id).filter(|task| task.state == TaskState::Pending && task.held.is_none())
            else {
                continue;
            };
            // One that would wait for maps would keep the worker from them.
            if !job.is_open(id.kind) || self.waits_for_inputs(*id) {
                continue;
            }
            let able = |worker: WorkerId| {
                cluster.workers[&worker].is_well() && cluster.workers[&worker].slots[id.kind] > 0
            };
            let rank = |worker: &WorkerId| {
                let died = task.faults.lost_with.contains(&cluster.host_of(*worker));
                (died, self.at_work(*worker).count(), *worker)
            };
            let best = || cluster.workers.keys().filter(|worker| able(*worker)).min_by_key(rank);
            if let Some(worker) = kept.filter(|worker| able(*worker)).or_else(best) {
                return Some((*id, worker));
            }
        }
        None
    }

    /// Whether a task is a reduce some of whose inputs are not there.
    fn waits_for_inputs(&self, id: TaskId) -> bool {
        let job = self.cluster.jobs.get(&id.job);
        id.kind == TaskKind::Reduce && job.is_some_and(|job| !job.phases.map.is_done())
    }

    /// The attempts on a worker that hold slots there.
    fn at_work(&self, id: WorkerId) -> impl Iterator<Item = AttemptId> + '_ {
        let worker = self.cluster.workers.get(&id).filter(|worker| worker.state != WorkerState::Unknown);
        let attempts = worker.into_iter().flat_map(Worker::attempts);
        attempts.filter(|attempt| self.cluster.attempts[attempt].holds_slot)
    }
}
