//! Containment of broken workers: a task avoids workers on which it failed, and a worker with many failures
//! is excluded. If no other worker is left, a task runs where it failed before, and half of the workers are
//! never excluded, so no work waits forever.

use crate::cluster::Deadline;
use crate::effect::Record;
use crate::engine::Engine;
use crate::ids::{TaskId, WorkerId};
use crate::states::WorkerState;

impl Engine {
    /// Makes a task avoid the worker on which it had a counted failure.
    pub(super) fn avoid(&mut self, task: TaskId, worker: WorkerId) {
        let usable = self.cluster.usable(task.kind);
        let job = self.cluster.job_mut(task.job);
        job.phases[task.kind].failed_on(task.index, worker, &usable);
        self.cluster.refresh(task.job);
    }

    /// Counts a failure against a worker; the fault may be the task's or the worker's.
    pub(super) fn hold_against(&mut self, id: WorkerId, task: TaskId) {
        let worker = self.cluster.worker_mut(id);
        worker.health_mut().count_failure(task);
        let (failures, tasks) = worker.health().failures();
        let Some(rule) = self.settings.exclusion else { return };
        let much = failures >= rule.failures && tasks >= rule.tasks as usize;
        let up = worker.state() == WorkerState::Up && worker.excluded_until().is_none();
        if !much || !up || !self.cluster.may_exclude(id) {
            return;
        }
        let until = self.cluster.now + rule.span;
        self.cluster.worker_mut(id).health_mut().exclude(until);
        self.cluster.quarantine.exclude(id, until);
        self.cluster.deadlines.set(until, Deadline::Excluded(id));
        self.cluster.list_worker(id);
        self.cluster.drop_reservations(id, |_, _| true);
        self.workers_changed();
        self.record(Record::WorkerExcluded { worker: id, until });
        self.warn(format!(
            "{id} is excluded until {until}: the last {failures} attempts there failed, of {tasks} tasks; see their logs"
        ));
    }

    /// Clears a worker's failures after an attempt succeeded there.
    pub(super) fn trust_again(&mut self, id: WorkerId) {
        self.cluster.worker_mut(id).health_mut().clear_failures();
    }

    /// Ends the exclusion of a worker and clears its failures.
    pub(super) fn exclusion_over(&mut self, id: WorkerId) {
        let Some(until) = self.cluster.worker_mut(id).health_mut().end_exclusion() else { return };
        self.trust_again(id);
        self.cluster.quarantine.end_exclusion(id, until);
        self.cluster.deadlines.cancel(until, Deadline::Excluded(id));
        self.cluster.list_worker(id);
        self.workers_changed();
    }

    /// Updates avoided and excluded workers after the set of usable workers changed: tasks may need them, and
    /// half of the workers stay in use.
    pub(super) fn workers_changed(&mut self) {
        while let Some(one) = self.cluster.one_too_many_excluded() {
            self.exclusion_over(one);
        }
        self.cluster.find_avoided();
    }
}
