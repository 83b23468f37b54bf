//! Tasks suspected of crashing their workers: they run alone to find out.
//!
//! A crashing worker takes innocent tasks with it, so one crash is not evidence. A task that ran during two
//! crashes runs alone from then on, on another host if there is one, on a worker that is kept free for it.
//! Only crashes while it runs alone count against it.

use crate::cluster::{Cluster, Worker};
use crate::effect::Record;
use crate::engine::Rules;
use crate::ids::{AttemptId, TaskId, WorkerId};
use crate::job::JobOutcome;
use crate::states::{AttemptState, JobInput, JobState, TaskState, WorkerState};

impl Rules {
    /// Records that a worker crashed while a task ran there: the task runs alone from the second crash on,
    /// and fails after too many crashes while it ran alone.
    pub(super) fn suspect(&mut self, id: TaskId) {
        if self.cluster.active_job(id.job).is_none() {
            return;
        }
        let task = self.cluster.task_mut(id);
        if !task.is_isolated() || task.state == TaskState::Done {
            return;
        }
        let deaths = task.faults.lost_with.len();
        let alone = task.faults.lost_alone;
        if alone >= self.settings.crashes_max && self.cluster.is_convicted(id) {
            let reason = format!(
                "each of {alone} workers died while it ran there alone, and {} before: the task is assumed \
                 to be the cause",
                deaths.saturating_sub(alone as usize)
            );
            return self.fail_task(id, reason);
        }
        if self.cluster.job_mut(id.job).phases[id.kind]
            .isolated
            .insert(id.index)
        {
            let reason = format!("{deaths} workers died while it ran there");
            self.record(Record::TaskIsolated { task: id, reason });
        }
        self.cluster.quarantine.isolate(id);
        self.cluster.refresh(id.job);
    }

    /// Ends the job of a task that must not be retried.
    pub(super) fn fail_task(&mut self, id: TaskId, reason: String) {
        let reason = format!("{id} is not retried: {reason}");
        self.decide(id.job, JobInput::Failed, JobOutcome::Failed { reason });
    }

    /// Starts a task that must run alone, or keeps a worker free for it.
    pub(super) fn run_isolated(&mut self) {
        if self.cluster.quarantine.isolated().is_empty()
            && self.cluster.quarantine.cleared().is_none()
        {
            return;
        }
        let jobs = &self.cluster.jobs;
        let active = |id: &TaskId| {
            jobs.get(&id.job)
                .is_some_and(|job| job.state == JobState::Active)
        };
        self.cluster.quarantine.retain_isolated(active);
        let kept = self
            .cluster
            .quarantine
            .cleared()
            .filter(|id| self.cluster.workers[id].is_well());
        let alone = |one: TaskId| {
            self.cluster.quarantine.isolated().contains(&one)
                && !self.cluster.job(one.job).waits_for_maps(one.kind)
        };
        if kept.is_some_and(|id| self.cluster.at_work(id).any(|one| alone(one.task))) {
            return;
        }
        let next = self.cluster.next_isolated(kept);
        let worker = next.map(|(_, worker)| worker);
        if self.cluster.quarantine.cleared() != worker {
            let before = self.cluster.quarantine.clear(worker);
            for id in before.into_iter().chain(worker) {
                self.cluster.worker_mut(id).set_cleared(Some(id) == worker);
                self.use_changed(id);
            }
        }
        let Some((task, worker)) = next else { return };
        // Attempts that wait for maps, which cannot run meanwhile, would wait forever.
        let waiting: Vec<_> = self
            .cluster
            .at_work(worker)
            .filter(|one| {
                let job = self.cluster.job(one.task.job);
                job.waits_for_maps(one.task.kind)
            })
            .collect();
        for attempt in waiting {
            self.kill(
                attempt,
                format!("{worker} is kept for {task}, which runs alone"),
            );
        }
        if self.cluster.at_work(worker).next().is_none() {
            let job = self.cluster.job(task.job);
            let from = job.start_of(task);
            let number = job.task(task).map_or(0, |task| task.launched) + 1;
            self.start(task, worker, from, None);
            // A duplicate would not run alone.
            self.cluster
                .attempt_mut(AttemptId { task, number })
                .duplicated = true;
        }
    }
}

impl Cluster {
    /// Records the crash of a worker. Returns the tasks that ran there; none of them has ended yet.
    pub(super) fn note_crash(&mut self, id: WorkerId) -> Vec<TaskId> {
        let host = self.host_of(id);
        let at_work: Vec<_> = self.at_work(id).collect();
        let alone = at_work.len() == 1;
        let mut tasks = Vec::new();
        for attempt in at_work {
            let known = &self.attempts[&attempt];
            if known.superseded || known.state == AttemptState::Killing {
                continue;
            }
            let task = self.task_mut(attempt.task);
            task.faults.lost_alone += u32::from(alone && task.is_isolated());
            task.faults.add_crash(&host);
            tasks.push(attempt.task);
        }
        tasks
    }

    /// Returns whether crashes prove a task guilty. One host is not evidence while another one could run the
    /// task.
    fn is_convicted(&self, id: TaskId) -> bool {
        let hosts = &self.task(id).faults.lost_with;
        let elsewhere = |(worker, known): (WorkerId, &Worker)| {
            known.is_well() && known.slots(id.kind) > 0 && !hosts.contains(&self.host_of(worker))
        };
        hosts.iter().any(|host| *host != hosts[0]) || !self.workers.iter().any(elsewhere)
    }

    /// Clears a completed task of suspicion.
    pub(super) fn clear_suspicion(&mut self, id: TaskId) {
        // Changing the faults of a task takes memory even if there are none.
        if self.task(id).faults.has_crashes() {
            self.task_mut(id).faults.clear_crashes();
        }
        self.job_mut(id.job).phases[id.kind]
            .isolated
            .remove(&id.index);
        self.quarantine.release(id);
    }

    /// Returns the first task that waits to run alone, and its worker: the one that is kept, or else the one
    /// that will be free soonest, preferably on a host without a crash.
    fn next_isolated(&self, kept: Option<WorkerId>) -> Option<(TaskId, WorkerId)> {
        let cluster = self;
        for id in cluster.quarantine.isolated() {
            let job = cluster.job(id.job);
            let Some(task) = job
                .task(*id)
                .filter(|task| task.state == TaskState::Pending && task.held.is_none())
            else {
                continue;
            };
            // A task that waits for maps would keep the worker from them.
            if !job.is_open(id.kind) || job.waits_for_maps(id.kind) {
                continue;
            }
            let able = |worker: WorkerId| {
                cluster.workers[&worker].is_well() && cluster.workers[&worker].slots(id.kind) > 0
            };
            let rank = |worker: &WorkerId| {
                let died = task.faults.lost_with.contains(&cluster.host_of(*worker));
                (died, self.at_work(*worker).count(), *worker)
            };
            let best = || {
                cluster
                    .workers
                    .keys()
                    .filter(|worker| able(*worker))
                    .min_by_key(rank)
            };
            if let Some(worker) = kept.filter(|worker| able(*worker)).or_else(best) {
                return Some((*id, worker));
            }
        }
        None
    }

    /// Returns the attempts that hold slots on a worker.
    fn at_work(&self, id: WorkerId) -> impl Iterator<Item = AttemptId> + '_ {
        let worker = self
            .workers
            .get(&id)
            .filter(|worker| worker.state() != WorkerState::Unknown);
        let attempts = worker.into_iter().flat_map(Worker::attempts);
        attempts.filter(|attempt| self.attempts[attempt].holds_slot)
    }
}
