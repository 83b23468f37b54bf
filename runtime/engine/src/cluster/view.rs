//! A read-only view of the engine's state, for schedulers, displays and tests.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::cluster::accesses::count_access;
use crate::cluster::{Attempt, Cluster, Job, Lengths, MeasuredCosts, Tally, Worker};
use crate::ids::{AttemptId, JobId, TaskKind, WorkerId};
use crate::pause::{Pause, PauseKind};
use crate::preemption::{PreemptRequest, Primitive, RequestState};
use crate::primitive_choice::Judged;
use crate::states::{AttemptState, JobState, Standing, WorkerState};
use crate::time::Time;

/// The current state of the cluster.
#[derive(Debug, Clone, Copy)]
pub struct ClusterView<'a> {
    cluster: &'a Cluster,
}

impl<'a> ClusterView<'a> {
    pub(crate) fn new(cluster: &'a Cluster) -> ClusterView<'a> {
        ClusterView { cluster }
    }

    pub(crate) fn cluster(&self) -> &'a Cluster {
        self.cluster
    }

    /// Returns the time of the last event.
    pub fn now(&self) -> Time {
        self.cluster.now
    }

    /// Returns the jobs that have not ended, by id.
    pub fn jobs(&self) -> impl Iterator<Item = &'a Job> + use<'a> {
        self.cluster.jobs.values().inspect(|_| count_access())
    }

    /// Returns a job that has not ended.
    pub fn job(&self, job: JobId) -> Option<&'a Job> {
        self.cluster.jobs.get(&job).inspect(|_| count_access())
    }

    /// Returns the jobs that could use a slot of a kind somewhere, by higher priority, earlier submission,
    /// smaller id. A job that only has an attempt to resume can use slots of that worker alone.
    pub fn wanting(&self, kind: TaskKind) -> impl Iterator<Item = &'a Job> + use<'a> {
        let cluster = self.cluster;
        cluster
            .demand
            .wanting(kind)
            .map(|job| cluster.job(job))
            .inspect(|_| count_access())
    }

    /// Returns the workers that are up, by id, including excluded ones.
    pub fn workers(&self) -> impl Iterator<Item = (WorkerId, &'a Worker)> + use<'a> {
        let workers = self.cluster.workers.iter().inspect(|_| count_access());
        workers.filter(|(_, worker)| worker.state() == WorkerState::Up)
    }

    /// Returns the workers that are up (excluded or not) or draining, by id.
    pub fn present_workers(&self) -> impl Iterator<Item = (WorkerId, &'a Worker)> + use<'a> {
        self.cluster
            .workers
            .iter()
            .filter(|(_, worker)| worker.state() != WorkerState::Lost)
    }

    /// Returns the hosts that could not read map outputs from a worker and have not read any since.
    pub fn unread_from(&self, worker: WorkerId) -> impl Iterator<Item = &'a str> + use<'a> {
        self.cluster.unread.readers(worker)
    }

    /// Returns a worker, up or lost.
    pub fn worker(&self, worker: WorkerId) -> Option<&'a Worker> {
        self.cluster
            .workers
            .get(&worker)
            .inspect(|_| count_access())
    }

    /// Returns the workers with free slots of a kind and their number, most first, including reserved slots.
    pub fn free(&self, kind: TaskKind) -> impl Iterator<Item = (WorkerId, u32)> + use<'a> {
        self.cluster
            .slots
            .free(kind)
            .iter()
            .map(|(Reverse(free), worker)| (worker, free))
            .inspect(|_| count_access())
    }

    /// Returns how many slots of a kind there are on workers that take attempts.
    pub fn slots(&self, kind: TaskKind) -> u32 {
        u32::try_from(self.cluster.slots.total(kind)).unwrap_or(u32::MAX)
    }

    /// Returns whether slots are shared by both kinds: a slot that a map holds is not available to a reduce.
    pub fn shares_slots(&self) -> bool {
        self.cluster.shares_slots
    }

    /// Returns how many of those are free, including reserved ones.
    pub fn free_slots(&self, kind: TaskKind) -> u32 {
        u32::try_from(self.cluster.slots.total_free(kind)).unwrap_or(u32::MAX)
    }

    /// Returns how many slots of a kind are held on all workers.
    pub fn used(&self, kind: TaskKind) -> u32 {
        self.cluster.slots.held()[kind]
    }

    /// Returns how many requests for attempts of a kind are open.
    pub fn freeing(&self, kind: TaskKind) -> u32 {
        self.cluster.requests.count(kind)
    }

    /// Returns whether a job with a suspended attempt on this worker could use a slot of a kind there.
    pub fn has_suspended(&self, kind: TaskKind, worker: WorkerId) -> bool {
        self.cluster.suspended.is_on(kind, worker)
    }

    /// Returns what a job that has not ended does, in one word.
    pub fn standing(&self, job: &Job) -> Standing {
        let runs = |id| {
            self.attempt(id)
                .is_some_and(|attempt| attempt.state() != AttemptState::Suspended)
        };
        let is_begun = || {
            let mut stopped = TaskKind::ALL
                .into_iter()
                .flat_map(|kind| job.held_tasks(kind));
            stopped.next().is_some() || job.attempts().next().is_some()
        };
        match job.pause() {
            _ if job.state() != JobState::Active => Standing::Stopping,
            Some(Pause {
                kind: PauseKind::Hold,
                ..
            }) => Standing::Held,
            _ if job.attempts().any(runs) => Standing::Running,
            Some(_) => Standing::Suspended,
            None if is_begun() => Standing::Suspended,
            None => Standing::Waiting,
        }
    }

    /// Returns the live attempts of all jobs, by id.
    pub fn attempts(&self) -> impl Iterator<Item = &'a Attempt> + use<'a> {
        self.cluster.attempts.values().inspect(|_| count_access())
    }

    /// Returns a live attempt.
    pub fn attempt(&self, attempt: AttemptId) -> Option<&'a Attempt> {
        self.cluster
            .attempts
            .get(&attempt)
            .inspect(|_| count_access())
    }

    /// Returns the open preemption requests, by victim.
    pub fn requests(&self) -> impl Iterator<Item = &'a PreemptRequest> + use<'a> {
        self.cluster.requests.iter().inspect(|_| count_access())
    }

    /// Returns the open preemption request for one attempt.
    pub fn request(&self, attempt: AttemptId) -> Option<&'a PreemptRequest> {
        self.cluster.requests.get(&attempt)
    }

    /// Returns whether an attempt is being killed to take its slot, not because its job is over, another attempt
    /// did its task, or an operator ordered it.
    pub fn is_killed_by_request(&self, attempt: AttemptId) -> bool {
        let Some(request) = self.request(attempt) else {
            return false;
        };
        let Some(known) = self.cluster.attempts.get(&attempt) else {
            return false;
        };
        let is_ordered =
            request.primitive == Primitive::Kill || request.state == RequestState::Forced;
        let job_is_active = self.cluster.job(attempt.task.job).state() == JobState::Active;
        known.state == AttemptState::Killing
            && is_ordered
            && known.kill_reason.is_none()
            && job_is_active
    }

    /// Returns the measured costs of taking slots from tasks of a kind and giving them back.
    pub fn costs(&self, kind: TaskKind) -> MeasuredCosts {
        self.cluster.costs.measured()[kind]
    }

    /// Returns the estimated and actual costs of primitives that were chosen by cost.
    pub fn judged(&self) -> &'a BTreeMap<Primitive, Judged> {
        self.cluster.costs.judged()
    }

    /// Returns the task durations of a kind to expect for a job like this one: from its own completed tasks,
    /// else from the last successful job of its name, else from all successful jobs. `None` if there are no
    /// such tasks.
    pub fn lengths(&self, name: &str, own: Option<&Job>, kind: TaskKind) -> Option<Lengths> {
        self.cluster.lengths.of(name, own, kind)
    }

    /// Returns the counts of dropped and ignored inputs and of preemptions.
    pub fn tally(&self) -> Tally {
        self.cluster.tally
    }
}
