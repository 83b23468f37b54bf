//! The cluster state, composed of parts. The submodules `held_slots`, `preempted`, `rack_index`, `exclusion`
//! and `gone` change several parts together; `view` and `explain` contain the queries.

use std::sync::Arc;

use crate::by_kind::ByKind;
use crate::cluster::attempt::Attempt;
use crate::cluster::costs::Costs;
use crate::cluster::deadlines::Deadlines;
use crate::cluster::demand::Demand;
use crate::cluster::departures::Departures;
use crate::cluster::held_slots::UnusedSlot;
use crate::cluster::id_map::{IdMap, OrderedIdMap};
use crate::cluster::job::Job;
use crate::cluster::lengths::KnownLengths;
use crate::cluster::quarantine::Quarantine;
use crate::cluster::racks::Racks;
use crate::cluster::requests::Requests;
use crate::cluster::slots::Slots;
use crate::cluster::suspended::Suspended;
use crate::cluster::tally::Tally;
use crate::cluster::task::Task;
use crate::cluster::unread::Unread;
use crate::cluster::worker::Worker;
use crate::ids::{AttemptId, JobId, TaskId, TaskKind, WorkerId};
use crate::job::JobPart;
use crate::numbers::Numbers;
use crate::sorted::{SortedMap, SortedSet};
use crate::states::AttemptState;
use crate::time::Time;

/// The state of the engine.
#[derive(Debug, Default)]
pub(crate) struct Cluster {
    pub now: Time,
    /// Slots of workers that join from now on are shared by both kinds.
    pub shares_slots: bool,
    /// The number of handled events, including the current one.
    pub events: u64,
    pub jobs: OrderedIdMap<JobId, Job>,
    /// The ids of ended jobs, which are not reused.
    pub ended: Numbers,
    pub workers: OrderedIdMap<WorkerId, Worker>,
    pub departures: Departures,
    /// The racks of the workers that are not lost; shared with every job.
    pub racks: Arc<Racks>,
    pub quarantine: Quarantine,
    pub unread: Unread,
    pub attempts: IdMap<AttemptId, Attempt>,
    pub requests: Requests,
    pub deadlines: Deadlines,
    pub slots: Slots,
    pub demand: Demand,
    pub costs: Costs,
    /// The durations of tasks of jobs that succeeded.
    pub lengths: KnownLengths,
    pub suspended: Suspended,
    /// The roles of jobs that are about to be submitted, if jobs have masters.
    pub parts: SortedMap<JobId, JobPart>,
    /// Slots that were freed in vain and are not recorded yet.
    pub unused: Vec<UnusedSlot>,
    pub tally: Tally,
}

impl Cluster {
    /// Returns a job that has not ended.
    pub fn job(&self, job: JobId) -> &Job {
        self.jobs
            .get(&job)
            .expect("a job is kept until the last of its attempts is gone")
    }

    /// Returns a job that has not ended.
    pub fn job_mut(&mut self, job: JobId) -> &mut Job {
        self.jobs
            .get_mut(&job)
            .expect("a job is kept until the last of its attempts is gone")
    }

    /// Returns a live attempt.
    pub fn attempt_mut(&mut self, attempt: AttemptId) -> &mut Attempt {
        self.attempts
            .get_mut(&attempt)
            .expect("the caller looked it up, and attempts end in one place")
    }

    /// Returns a task of a job that has not ended.
    pub fn task(&self, task: TaskId) -> &Task {
        self.job(task.job)
            .task(task)
            .expect("an attempt belongs to a task of its job")
    }

    /// Returns a task of a job that has not ended.
    pub fn task_mut(&mut self, task: TaskId) -> &mut Task {
        self.job_mut(task.job)
            .task_mut(task)
            .expect("an attempt belongs to a task of its job")
    }

    /// Returns a known worker.
    pub fn worker_mut(&mut self, worker: WorkerId) -> &mut Worker {
        self.workers
            .get_mut(&worker)
            .expect("workers are never forgotten")
    }

    /// Adds a new attempt to its worker and job, and gives it a slot. Returns the attempt that gave up the slot for
    /// the job, if any.
    pub fn add_attempt(&mut self, attempt: Attempt) -> Option<AttemptId> {
        let id = attempt.id;
        let worker = attempt.worker;
        let is_master = attempt.is_master;
        self.attempts.insert(id, attempt);
        self.worker_mut(worker).enter(id);
        self.job_mut(id.task.job).live.insert(id);
        let freed = self.occupy(worker, id.task.kind, id.task.job);
        if is_master {
            self.worker_mut(worker).add_master();
        }
        freed
    }

    /// Removes an ended attempt with its slot and its index entries. `before` is the state in which it ended.
    pub fn forget_attempt(&mut self, id: AttemptId, before: AttemptState) -> Attempt {
        let attempt = self.attempts.remove(&id).expect("an attempt ends once");
        let kind = id.task.kind;
        let worker = self.worker_mut(attempt.worker);
        worker.forget(id);
        if attempt.is_master {
            worker.remove_master();
        }
        let job = self.job_mut(id.task.job);
        job.live.remove(&id);
        job.awaiting_inputs.remove(&id);
        if before == AttemptState::Suspended {
            self.list_suspended(id, attempt.worker, false);
        }
        self.task_mut(id.task).live.remove(id.number);
        if attempt.holds_slot {
            self.vacate(attempt.worker, kind, id.task.job);
        }
        attempt
    }

    /// Updates the data derived from a job's state: whether it wants slots or may have stragglers, and
    /// whether slots are still kept for it. Must be called after every change of a job.
    pub fn refresh(&mut self, id: JobId) {
        self.touch(id);
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        self.demand.list(job);
        // A job may have a slot kept on every worker: skip the scan while it can use each of them.
        let uses_any = |kind| {
            let phase = &job.phases[kind];
            job.eligible_count(kind) > 0 && phase.avoided.is_empty() && phase.shunned.is_empty()
        };
        if job.slots.reserved_on().is_empty()
            || TaskKind::ALL
                .into_iter()
                .all(|kind| job.slots.promised(kind) == 0 || uses_any(kind))
        {
            return;
        }
        for worker in job.slots.reserved_on().clone() {
            self.drop_reservations(worker, |cluster, kept| {
                kept.job == id && !cluster.job(id).wants_on(kept.kind, worker)
            });
        }
    }

    /// Removes a job from every index ordered by its specification. The caller must insert and refresh it
    /// again.
    pub fn take_out(&mut self, id: JobId) -> Option<Job> {
        let mut job = self.jobs.remove(&id)?;
        self.demand.unlist(&mut job);
        Some(job)
    }

    /// Marks a job whose change the policy must be notified of.
    pub fn touch(&mut self, id: JobId) {
        let listed = self
            .jobs
            .get_mut(&id)
            .map(|job| std::mem::replace(&mut job.changed, true));
        if listed != Some(true) {
            self.demand.add_changed(id);
        }
    }

    /// Returns the host of a worker, or a unique name if it has a host of its own.
    pub fn host_of(&self, worker: WorkerId) -> String {
        match self.workers.get(&worker) {
            Some(known) if !known.host().is_empty() => known.host().to_owned(),
            _ => worker.to_string(),
        }
    }

    /// Returns the workers that could run a task of a kind; slots held by masters stay unavailable until
    /// their jobs end.
    pub fn usable(&self, kind: TaskKind) -> SortedSet<WorkerId> {
        let usable = |(_, worker): &(WorkerId, &Worker)| {
            worker.takes_attempts() && worker.slots(kind) > worker.masters()
        };
        self.workers
            .iter()
            .filter(usable)
            .map(|(id, _)| id)
            .collect()
    }

    /// Recomputes which tasks of a job avoid which workers, after a change of its faults.
    pub fn find_avoided_by(&mut self, id: JobId) {
        let usable = ByKind::from_fn(|kind| self.usable(kind));
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        for kind in TaskKind::ALL {
            job.phases[kind].find_avoided(&usable[kind]);
        }
        self.refresh(id);
    }

    /// Recomputes which tasks avoid which workers, after the set of usable workers changed.
    pub fn find_avoided(&mut self) {
        if self.jobs.values().all(|job| {
            TaskKind::ALL
                .iter()
                .all(|kind| job.phases[*kind].failed.is_empty())
        }) {
            return;
        }
        let usable = ByKind::from_fn(|kind| self.usable(kind));
        let mut changed = Vec::new();
        for id in self.jobs.keys() {
            let job = self.job_mut(id);
            for kind in TaskKind::ALL {
                if !job.phases[kind].failed.is_empty() {
                    job.phases[kind].find_avoided(&usable[kind]);
                    changed.push(job.id);
                }
            }
        }
        for job in changed {
            self.refresh(job);
        }
    }
}
