//! Launches and resumes attempts where the scheduler requests it, if that is legal.

use crate::cluster::{Attempt, Cluster, Job, Reservation, Worker};
use crate::effect::{Order, Record, Start};
use crate::engine::Rules;
use crate::ids::{AttemptId, JobId, TaskId, TaskKind, WorkerId};
use crate::refusal::ActionRefusal;
use crate::states::{AttemptInput, AttemptState, JobState, TaskInput, TaskState};
use crate::time::Time;

impl Rules {
    /// Starts an attempt; fails if that is not possible.
    pub(super) fn launch(
        &mut self,
        id: TaskId,
        worker: WorkerId,
        from: Start,
    ) -> Result<(), ActionRefusal> {
        let job = self
            .cluster
            .jobs
            .get(&id.job)
            .ok_or(ActionRefusal::NoSuchJob(id.job))?;
        job.can_launch(id, worker, from)?;
        self.cluster.slot_for(worker, id.kind, id.job)?;
        self.start(id, worker, from, None);
        Ok(())
    }

    /// Starts an attempt in a free slot, as the only one of its task or as the duplicate of a slow one.
    pub(super) fn start(
        &mut self,
        id: TaskId,
        worker: WorkerId,
        from: Start,
        duplicate_of: Option<AttemptId>,
    ) {
        let job = self.cluster.job(id.job);
        let named = id.kind == TaskKind::Reduce && self.settings.name_outputs;
        let inputs = if named { job.map_outputs() } else { Vec::new() };
        let complete = !named || inputs.len() == job.phases.map.tasks.len();

        let now = self.cluster.now;
        let launched = if duplicate_of.is_none() {
            TaskInput::Launched
        } else {
            TaskInput::DuplicateLaunched
        };
        let job = self.cluster.job_mut(id.job);
        let is_master = job.is_master();
        let attempt = job.launch(id, launched, now);
        if !complete {
            job.awaiting_inputs.insert(attempt);
        }
        if let Some(slow) = duplicate_of {
            self.cluster.attempt_mut(slow).duplicated = true;
        }
        let task = self.cluster.task(id);
        let mut known = Attempt::new(attempt, worker, from, now, self.cluster.events);
        known.duplicate_of = duplicate_of;
        known.spared_for = self
            .settings
            .preemption
            .spared_for(task.fruitless, task.lost_work);
        known.is_master = is_master;
        if from != Start::Fresh {
            known.continue_from(task.saved, task.kept);
        }
        let freed = self.cluster.add_attempt(known);
        if is_master {
            self.cluster.find_avoided();
        }
        self.cluster.refresh(id.job);
        self.record(Record::AttemptLaunched {
            attempt,
            worker,
            duplicate_of,
        });
        self.record_taken(freed, attempt);
        self.send(
            worker,
            Order::Launch {
                attempt,
                from,
                inputs,
            },
        );
    }

    /// Continues a suspended attempt; fails if that is not possible.
    pub(super) fn resume(&mut self, id: AttemptId) -> Result<(), ActionRefusal> {
        let attempt = self
            .cluster
            .attempts
            .get(&id)
            .ok_or(ActionRefusal::NotLive(id))?;
        let worker = attempt.worker;
        let job = self.cluster.job(id.task.job);
        if attempt.state != AttemptState::Suspended || job.state != JobState::Active {
            let state = attempt.state;
            let job = job.state;
            return Err(ActionRefusal::NotSuspended {
                attempt: id,
                state,
                job,
            });
        }
        if attempt.is_held() || job.pause.is_some() {
            return Err(ActionRefusal::AttemptHeld(id));
        }
        self.cluster.slot_for(worker, id.task.kind, id.task.job)?;
        self.resume_in_slot(id);
        Ok(())
    }

    /// Continues a suspended attempt in a slot that is available to it.
    pub(super) fn resume_in_slot(&mut self, id: AttemptId) {
        let task = self.cluster.task(id.task);
        let spared_for = self
            .settings
            .preemption
            .spared_for(task.fruitless, task.lost_work);
        let attempt = self.cluster.attempt_mut(id);
        attempt.take_slot(spared_for);
        let worker = attempt.worker;
        self.cluster.list_suspended(id, worker, false);
        let freed = self.cluster.occupy(worker, id.task.kind, id.task.job);
        self.cluster.refresh(id.task.job);
        self.record_taken(freed, id);
        self.order(
            id,
            AttemptInput::ResumeOrdered,
            Order::Resume { attempt: id },
        );
    }

    fn record_taken(&mut self, freed: Option<AttemptId>, by: AttemptId) {
        if let Some(freed) = freed {
            self.record(Record::SlotTaken { freed, by });
        }
    }
}

impl Cluster {
    /// Returns whether a suspended attempt has a slot in which it can continue.
    pub(super) fn has_slot_to_resume(&self, id: AttemptId) -> bool {
        let worker = self.attempts[&id].worker;
        self.slot_for(worker, id.task.kind, id.task.job).is_ok()
    }

    /// Reserves a free slot for a job; fails if that is not possible.
    pub(super) fn keep_slot(
        &mut self,
        id: WorkerId,
        kind: TaskKind,
        job: JobId,
        until: Time,
    ) -> Result<(), ActionRefusal> {
        let wants = self
            .jobs
            .get(&job)
            .is_some_and(|job| job.wants_on(kind, id));
        let worker = self.usable_worker(id)?;
        if worker.reservation_of(job, kind).is_some() {
            return Ok(());
        }
        if !wants || worker.free(kind) <= worker.reserved(kind) || until <= self.now {
            return Err(ActionRefusal::NothingToReserve {
                worker: id,
                kind,
                job,
                until,
            });
        }
        self.reserve(
            id,
            Reservation {
                job,
                kind,
                until,
                of: None,
            },
        );
        Ok(())
    }

    fn usable_worker(&self, id: WorkerId) -> Result<&Worker, ActionRefusal> {
        let worker = self
            .workers
            .get(&id)
            .ok_or(ActionRefusal::NoSuchWorker(id))?;
        if !worker.takes_attempts() {
            let state = worker.state();
            let excluded = worker.excluded_until().is_some();
            return Err(ActionRefusal::TakesNoAttempts {
                worker: id,
                state,
                excluded,
            });
        }
        Ok(worker)
    }

    fn slot_for(&self, id: WorkerId, kind: TaskKind, job: JobId) -> Result<(), ActionRefusal> {
        let worker = self.usable_worker(id)?;
        if !worker.has_slot_for(job, kind) {
            let free = worker.free(kind);
            let reserved = worker.reserved(kind);
            return Err(ActionRefusal::NoSlot {
                worker: id,
                kind,
                job,
                free,
                reserved,
            });
        }
        Ok(())
    }
}

impl Job {
    /// Checks whether an attempt at a task may be launched on a worker, provided that there is a slot for it.
    fn can_launch(&self, id: TaskId, worker: WorkerId, from: Start) -> Result<(), ActionRefusal> {
        let task = self.task(id).ok_or(ActionRefusal::NoSuchTask(id))?;
        if let Some(reason) = &task.held {
            return Err(ActionRefusal::TaskHeld {
                task: id,
                reason: reason.clone(),
            });
        }
        if task.state != TaskState::Pending || !self.is_open(id.kind) {
            return Err(ActionRefusal::NotLaunchable {
                task: id,
                state: task.state,
                job: self.state,
            });
        }
        if from != Start::Fresh && from != self.start_of(id) {
            return Err(ActionRefusal::Start {
                task: id,
                from,
                possible: self.start_of(id),
            });
        }
        if self.avoids(id, worker) {
            return Err(ActionRefusal::FailedThere { task: id, worker });
        }
        Ok(())
    }
}
