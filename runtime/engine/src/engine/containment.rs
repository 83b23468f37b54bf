//! Containment of broken workers. Three steps, each needs more evidence than the one before:
//!
//! 1. A task avoids the workers on which it failed.
//! 2. After several failures of different tasks, the job's tasks of that kind avoid the worker for a while.
//! 3. When tasks that failed there then succeed on other workers, the failures count against the worker. After
//!    several of them it is excluded for a while.
//!
//! A job that fails everywhere thus affects no other job. If no other worker is left, a task runs where it
//! failed before, and half of the workers are never excluded, so no work waits forever.

use crate::cluster::{Cluster, Deadline, Job};
use crate::effect::Record;
use crate::engine::Rules;
use crate::ids::{AttemptId, JobId, TaskId, TaskKind, WorkerId};
use crate::settings::ExclusionSettings;
use crate::states::WorkerState;
use crate::time::Time;

impl Rules {
    /// Counts the failures of a task that succeeded on a worker against the other workers where it failed.
    pub(super) fn settle_blame(&mut self, task: TaskId, succeeded_on: WorkerId) {
        let phase = &self.cluster.job(task.job).phases[task.kind];
        if phase.failed.is_empty() {
            return;
        }
        let failed_on = phase.tasks[task.index as usize].faults.failed_on.clone();
        let had_streak = phase.streaks.contains_key(&succeeded_on);
        for worker in failed_on {
            let Some(known) = self.cluster.workers.get_mut(&worker) else {
                continue;
            };
            if known.health_mut().convict(task) {
                self.exclude_failing(worker);
            }
        }
        if had_streak {
            self.cluster.change_avoidance(task.job, |job| {
                job.phases[task.kind].streaks.remove(&succeeded_on);
            });
        }
    }

    /// Excludes a worker if the failures that were its fault suffice.
    fn exclude_failing(&mut self, id: WorkerId) {
        let Some(rule) = self.settings.exclusion else {
            return;
        };
        let worker = &self.cluster.workers[&id];
        let Some(blame) = worker.blame().cloned() else {
            return;
        };
        let much = blame.failures >= rule.failures && blame.tasks >= rule.tasks;
        let up = worker.state() == WorkerState::Up && worker.exclusion().is_none();
        if !much || !up || !self.cluster.may_exclude(id) {
            return;
        }
        let until = self.cluster.now + rule.span;
        let message = format!("{id} is excluded until {until}: {}", blame.in_words());
        self.cluster
            .worker_mut(id)
            .health_mut()
            .exclude(until, blame);
        self.cluster.quarantine.exclude(id, until);
        self.cluster.deadlines.set(until, Deadline::Excluded(id));
        self.cluster.list_worker(id);
        self.promise_no_slots_of(id);
        self.cluster.workers_changed();
        self.record(Record::WorkerExcluded { worker: id, until });
        self.warn(message);
    }
}

impl Cluster {
    /// Records a failure of which the task or the worker may be the cause: it counts against the worker when
    /// the task succeeds on another one. After many failures the tasks of this kind of the job avoid the worker
    /// for a while.
    pub(super) fn hold_against(
        &mut self,
        worker: WorkerId,
        failed: AttemptId,
        reason: &str,
        exclusion: Option<ExclusionSettings>,
    ) {
        if self.active_job(failed.task.job).is_none() {
            return;
        }
        self.worker_mut(worker).health_mut().suspect(failed, reason);
        if let Some(rule) = exclusion {
            let until = self.now + rule.span;
            self.extend_streak(failed.task, worker, rule, until, false);
        }
    }

    /// Adds a failure to those of a job's tasks of one kind on a worker. When there are many, all of these
    /// tasks avoid the worker until the given time.
    pub(super) fn extend_streak(
        &mut self,
        task: TaskId,
        worker: WorkerId,
        rule: ExclusionSettings,
        until: Time,
        lacks_resource: bool,
    ) {
        let phase = &mut self.job_mut(task.job).phases[task.kind];
        if phase.extend_streak(task.index, worker, rule) {
            self.change_avoidance(task.job, |job| {
                job.phases[task.kind].avoid_until(worker, until, lacks_resource);
            });
        }
    }

    /// Makes a task avoid the worker on which it had a counted failure.
    pub(super) fn avoid(&mut self, task: TaskId, worker: WorkerId) {
        let usable = self.usable(task.kind);
        let job = self.job_mut(task.job);
        job.phases[task.kind].failed_on(task.index, worker, &usable);
        self.refresh(task.job);
    }

    /// Ends the avoidance of workers by tasks of a job that is due.
    pub(super) fn avoidance_over(&mut self, id: JobId) {
        let now = self.now;
        self.change_avoidance(id, |job| {
            for kind in TaskKind::ALL {
                job.phases[kind].end_avoidance(now);
            }
        });
    }

    /// Ends the avoidance of a worker because it lacked a resource.
    pub(super) fn forget_shortage_failures(&mut self, worker: WorkerId) {
        let ids: Vec<JobId> = self.jobs.keys().collect();
        for id in ids {
            let job = self.job(id);
            if job.avoidance_ends().next().is_some() {
                self.change_avoidance(id, |job| {
                    for kind in TaskKind::ALL {
                        job.phases[kind].end_shortage_of(worker);
                    }
                });
            }
        }
    }

    /// Forgets the failures of a job that is over.
    pub(super) fn forget_failures_of(&mut self, id: JobId) {
        let failed = self.job(id).failures_on_workers();
        if failed.is_empty() {
            return;
        }
        for (worker, task) in failed {
            if let Some(worker) = self.workers.get_mut(&worker) {
                worker.health_mut().acquit(task);
            }
        }
        self.change_avoidance(id, |job| {
            for kind in TaskKind::ALL {
                job.phases[kind].end_avoidance(Time(u64::MAX));
                job.phases[kind].streaks.clear();
            }
        });
    }

    /// Changes which workers the tasks of a job avoid, and for how long.
    pub(super) fn change_avoidance(&mut self, id: JobId, change: impl FnOnce(&mut Job)) {
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        for end in job.avoidance_ends() {
            self.deadlines.cancel(end, Deadline::AvoidanceOver(id));
        }
        change(job);
        for end in job.avoidance_ends() {
            self.deadlines.set(end, Deadline::AvoidanceOver(id));
        }
        self.find_avoided_by(id);
    }

    /// Ends the exclusion of a worker and clears its failures.
    pub(super) fn exclusion_over(&mut self, id: WorkerId) {
        let health = self.worker_mut(id).health_mut();
        let Some(until) = health.end_exclusion() else {
            return;
        };
        health.clear_failures();
        self.quarantine.end_exclusion(id, until);
        self.deadlines.cancel(until, Deadline::Excluded(id));
        self.list_worker(id);
        self.workers_changed();
    }

    /// Updates avoided and excluded workers after the set of usable workers changed: tasks may need them, and
    /// half of the workers stay in use.
    pub(super) fn workers_changed(&mut self) {
        while let Some(one) = self.one_too_many_excluded() {
            self.exclusion_over(one);
        }
        self.find_avoided();
    }
}

impl Job {
    /// Returns the workers on which its tasks failed, with these tasks.
    fn failures_on_workers(&self) -> Vec<(WorkerId, TaskId)> {
        let mut failures = Vec::new();
        for kind in TaskKind::ALL {
            let phase = &self.phases[kind];
            for &index in &phase.failed {
                let task = TaskId {
                    job: self.id,
                    kind,
                    index,
                };
                for worker in &phase.tasks[index as usize].faults.failed_on {
                    failures.push((*worker, task));
                }
            }
        }
        failures
    }
}
