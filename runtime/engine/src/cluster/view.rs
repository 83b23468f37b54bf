//! What schedulers, displays and tests may see of the engine's state: all of it, read-only.
//!
//! Owns the questions. Does not own the data, nor any change of it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::cluster::looks::looked;
use crate::cluster::{Attempt, Cluster, Job, Lengths, MeasuredCosts, Tally, Worker};
use crate::ids::{AttemptId, JobId, TaskKind, WorkerId};
use crate::preemption::{PreemptRequest, Primitive};
use crate::primitive_choice::Judged;
use crate::states::{AttemptState, JobState, WorkerState};
use crate::time::Time;

/// The cluster as it is now.
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

    /// The time of the last event.
    pub fn now(&self) -> Time {
        self.cluster.now
    }

    /// The jobs that have not ended, by id.
    pub fn jobs(&self) -> impl Iterator<Item = &'a Job> + use<'a> {
        self.cluster.jobs.values().inspect(|_| looked())
    }

    /// A job that has not ended.
    pub fn job(&self, job: JobId) -> Option<&'a Job> {
        self.cluster.jobs.get(&job).inspect(|_| looked())
    }

    /// The jobs that could use a slot of a kind somewhere, in giving order: higher priority, earlier
    /// submission, smaller id. A job whose only wish is to resume an attempt can use slots of that
    /// worker alone.
    pub fn wanting(&self, kind: TaskKind) -> impl Iterator<Item = &'a Job> + use<'a> {
        let cluster = self.cluster;
        cluster.wanting[kind].iter().map(|(_, _, job)| cluster.job(*job)).inspect(|_| looked())
    }

    /// The workers that are up, by id; one that is excluded is up.
    pub fn workers(&self) -> impl Iterator<Item = (WorkerId, &'a Worker)> + use<'a> {
        let workers = self.cluster.workers.iter().inspect(|_| looked());
        workers.filter(|(_, worker)| worker.state == WorkerState::Up)
    }

    /// The workers that are there, by id: those that are up, excluded or not, and those that are draining.
    pub fn present_workers(&self) -> impl Iterator<Item = (WorkerId, &'a Worker)> + use<'a> {
        self.cluster.workers.iter().filter(|(_, worker)| worker.state != WorkerState::Lost)
    }

    /// The hosts that could not read map outputs from a worker, and have read nothing since.
    pub fn unread_from(&self, worker: WorkerId) -> impl Iterator<Item = &'a str> + use<'a> {
        let unread = self.cluster.unread.iter();
        unread.filter(move |(holder, _)| *holder == worker).map(|(_, reader)| reader.as_str())
    }

    /// A worker, up or lost.
    pub fn worker(&self, worker: WorkerId) -> Option<&'a Worker> {
        self.cluster.workers.get(&worker).inspect(|_| looked())
    }

    /// The workers with free slots of a kind and how many, most first; reserved slots included.
    pub fn free(&self, kind: TaskKind) -> impl Iterator<Item = (WorkerId, u32)> + use<'a> {
        self.cluster.free[kind].iter().map(|(Reverse(free), worker)| (worker, free)).inspect(|_| looked())
    }

    /// How many slots of a kind the workers have that take attempts.
    pub fn slots(&self, kind: TaskKind) -> u32 {
        u32::try_from(self.cluster.slots[kind]).unwrap_or(u32::MAX)
    }

    /// Whether slots are of one kind: then those of either kind are the same ones, and what a map holds no
    /// reduce can have.
    pub fn shares_slots(&self) -> bool {
        self.cluster.shares_slots
    }

    /// How many of those are free, reserved ones included.
    pub fn free_slots(&self, kind: TaskKind) -> u32 {
        u32::try_from(self.cluster.free_slots[kind]).unwrap_or(u32::MAX)
    }

    /// How many slots of a kind are held, on whatever worker.
    pub fn used(&self, kind: TaskKind) -> u32 {
        self.cluster.held_slots[kind]
    }

    /// How many open requests there are for attempts of a kind.
    pub fn freeing(&self, kind: TaskKind) -> u32 {
        self.cluster.freeing[kind]
    }

    /// Whether a job of which something is suspended on this worker could use a slot of a kind there.
    pub fn has_suspended(&self, kind: TaskKind, worker: WorkerId) -> bool {
        self.cluster.suspended_on[kind].contains_key(&worker)
    }

    /// Whether a job stands still: it has live attempts and all of them are suspended, or an operator
    /// suspended it, or tasks of it, and none of it runs.
    pub fn is_suspended(&self, job: &Job) -> bool {
        let runs = |id| self.attempt(id).is_some_and(|attempt| attempt.state() != AttemptState::Suspended);
        let held = TaskKind::ALL.into_iter().any(|kind| job.held_tasks(kind).next().is_some());
        let may_stand = held || job.held().is_some() || job.attempts().next().is_some();
        job.state() == JobState::Active && may_stand && !job.attempts().any(runs)
    }

    /// The live attempts of all jobs, by id.
    pub fn attempts(&self) -> impl Iterator<Item = &'a Attempt> + use<'a> {
        self.cluster.attempts.values().inspect(|_| looked())
    }

    /// A live attempt.
    pub fn attempt(&self, attempt: AttemptId) -> Option<&'a Attempt> {
        self.cluster.attempts.get(&attempt).inspect(|_| looked())
    }

    /// The pending preemptions, by victim.
    pub fn requests(&self) -> impl Iterator<Item = &'a PreemptRequest> + use<'a> {
        self.cluster.requests.values().inspect(|_| looked())
    }

    /// The pending preemption of one attempt.
    pub fn request(&self, attempt: AttemptId) -> Option<&'a PreemptRequest> {
        self.cluster.requests.get(&attempt)
    }

    /// What taking slots from tasks of a kind, and giving them back, took so far.
    pub fn costs(&self, kind: TaskKind) -> MeasuredCosts {
        self.cluster.costs[kind]
    }

    /// What primitives that were chosen by their costs were expected to cost, and did.
    pub fn judged(&self) -> &'a BTreeMap<Primitive, Judged> {
        &self.cluster.judged
    }

    /// What tasks of a kind take of jobs like this one: of what it has done itself, else of the last job of
    /// its name that ended well, else of all that did. Nothing while none of them is known.
    pub fn lengths(&self, name: &str, own: Option<&Job>, kind: TaskKind) -> Option<Lengths> {
        self.cluster.lengths.of(name, own, kind)
    }

    /// What was dropped, ignored and preempted so far.
    pub fn tally(&self) -> Tally {
        self.cluster.tally
    }
}
