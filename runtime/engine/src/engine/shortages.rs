//! Workers that lack a resource that every attempt needs: disk, or a limit of their host. A worker that
//! reports a shortage also reports its end; after a failure on a worker that does not, the worker gets no
//! attempts for a while, longer each time. Unlike an excluded worker it stays out of use even if no other is
//! left: a job waits rather than fails. If the shortage follows the task to enough hosts, the task is at
//! fault.

use crate::cluster::Deadline;
use crate::effect::Record;
use crate::engine::Engine;
use crate::ids::{TaskId, WorkerId};
use crate::states::WorkerState;

impl Engine {
    /// Handles a worker's report that a shortage began or ended.
    pub(super) fn worker_short(&mut self, id: WorkerId, lacks: Option<&str>) {
        let known = self.cluster.workers.get_mut(&id);
        let Some(worker) = known.filter(|worker| worker.state() != WorkerState::Lost) else {
            self.cluster.tally.illegal_events += 1;
            self.warn(format!("{id} is unknown and cannot have a shortage; ignored"));
            return;
        };
        if !worker.health_mut().report_shortage(lacks) {
            return;
        }
        self.record(Record::WorkerShort { worker: id, lacks: lacks.map(str::to_owned), until: None });
        self.use_changed(id);
    }

    /// Handles a failure caused by a shortage of the host: the task runs on another host, and the worker gets
    /// no attempts for a while. When the number of such hosts reaches the task's attempts, the task is at
    /// fault.
    pub(super) fn excuse_for_host(&mut self, task: TaskId, worker: WorkerId, reason: String) {
        self.exclude(worker, &reason);
        let Some(job) = self.cluster.jobs.get(&task.job) else { return };
        let attempts_max = job.spec.attempts_max as usize;
        let host = self.cluster.host_of(worker);
        let short_on = &mut self.cluster.task_mut(task).faults.short_on;
        short_on.insert(host);
        let hosts = short_on.len();
        if hosts >= attempts_max.max(2) {
            self.fail_task(task, format!("on each of {hosts} hosts; the last: {reason}"));
        } else {
            self.avoid(task, worker);
        }
    }

    fn exclude(&mut self, id: WorkerId, because: &str) {
        let (now, first) = (self.cluster.now, self.settings.shortage_span);
        let worker = self.cluster.worker_mut(id);
        if worker.state() != WorkerState::Up {
            return;
        }
        let Some(until) = worker.health_mut().assume_shortage(now, first, because) else { return };
        self.cluster.deadlines.set(until, Deadline::ShortageOver(id));
        let lacks = Some(because.to_owned());
        self.record(Record::WorkerShort { worker: id, lacks, until: Some(until) });
        self.use_changed(id);
    }

    /// Tries a worker again after a shortage.
    pub(super) fn shortage_over(&mut self, id: WorkerId) {
        if self.cluster.worker_mut(id).health_mut().end_shortage() {
            self.use_changed(id);
        }
    }

    /// Updates the state after a worker started or stopped taking attempts.
    pub(super) fn use_changed(&mut self, id: WorkerId) {
        self.cluster.list_worker(id);
        if !self.cluster.workers[&id].takes_attempts() {
            self.cluster.drop_reservations(id, |_, _| true);
        }
        self.workers_changed();
    }
}
