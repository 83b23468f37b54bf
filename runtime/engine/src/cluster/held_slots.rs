//! Held and reserved slots. The counts of a worker, of a job and of the cluster change together here.

use crate::cluster::{Cluster, Deadline, Reservation};
use crate::ids::{AttemptId, JobId, TaskKind, WorkerId};

/// A slot that was freed for a job which did not use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnusedSlot {
    /// The attempt that gave it up.
    pub freed: AttemptId,
    pub job: JobId,
    pub kind: TaskKind,
    pub worker: WorkerId,
    /// Why it was not used, if that is known already; for people.
    pub reason: Option<String>,
}

impl Cluster {
    /// Gives a slot to an attempt of a job, preferably a reserved one. Returns the attempt that gave up the
    /// slot for the job, if any.
    pub fn occupy(&mut self, worker: WorkerId, kind: TaskKind, job: JobId) -> Option<AttemptId> {
        let mut used = None;
        self.remove_reservations(worker, |_, kept| {
            let mine = kept.job == job && kept.kind == kind && used.is_none();
            if mine {
                used = Some(kept.of);
            }
            mine
        });
        let known = self
            .workers
            .get_mut(&worker)
            .expect("workers are never forgotten");
        self.slots.occupy(known, kind);
        let known = self.job_mut(job);
        known.slots.occupy(kind);
        known.unused_on[kind].remove(&worker);
        self.touch(job);
        used.flatten()
    }

    /// Takes back the slot of an attempt of a job.
    pub fn vacate(&mut self, worker: WorkerId, kind: TaskKind, job: JobId) {
        let known = self
            .workers
            .get_mut(&worker)
            .expect("workers are never forgotten");
        self.slots.vacate(known, kind);
        self.job_mut(job).slots.vacate(kind);
        self.touch(job);
    }

    /// Updates the lists of slots after a worker started or stopped taking attempts.
    pub fn list_worker(&mut self, worker: WorkerId) {
        let known = self
            .workers
            .get_mut(&worker)
            .expect("workers are never forgotten");
        self.slots.list(known);
    }

    /// Reserves a free slot for a job until a time.
    pub fn reserve(&mut self, worker: WorkerId, reservation: Reservation) {
        self.deadlines
            .set(reservation.until, Deadline::Reservation(worker));
        self.worker_mut(worker).reserve(reservation);
        let job = self.job_mut(reservation.job);
        job.slots.reserve(reservation.kind, worker);
        self.touch(reservation.job);
    }

    /// Drops the reservations on a worker for which `unwanted` returns true. Slots that were freed for their
    /// jobs were freed in vain.
    pub fn drop_reservations(
        &mut self,
        worker: WorkerId,
        unwanted: impl FnMut(&Cluster, &Reservation) -> bool,
    ) {
        for gone in self.remove_reservations(worker, unwanted) {
            if let Some(freed) = gone.of {
                self.add_unused(UnusedSlot {
                    freed,
                    job: gone.job,
                    kind: gone.kind,
                    worker,
                    reason: None,
                });
            }
        }
    }

    /// Notes that a slot was freed for a job which did not use it. If the job still wants slots, none is freed
    /// for it on that worker until it starts something there.
    pub fn add_unused(&mut self, slot: UnusedSlot) {
        if slot.freed.task.job == slot.job {
            // The engine freed the slot of a reduce for a map of the same job.
            return;
        }
        if let Some(job) = self.jobs.get_mut(&slot.job)
            && job.wants(slot.kind)
        {
            job.unused_on[slot.kind].insert(slot.worker);
        }
        self.note_unused(slot);
    }

    /// Notes that a slot was freed in vain, for the history.
    pub fn note_unused(&mut self, slot: UnusedSlot) {
        if !self.has_finished(slot.freed) {
            self.unused.push(slot);
        }
    }

    /// Returns whether an attempt completed its task: nothing was taken from it.
    fn has_finished(&self, id: AttemptId) -> bool {
        let task = self
            .jobs
            .get(&id.task.job)
            .and_then(|job| job.task(id.task));
        let done_by = task.and_then(|task| task.done_by);
        done_by.is_some_and(|(number, _)| number == id.number)
    }

    /// Removes the reservations on a worker for which `removed` returns true.
    fn remove_reservations(
        &mut self,
        worker: WorkerId,
        mut removed: impl FnMut(&Cluster, &Reservation) -> bool,
    ) -> Vec<Reservation> {
        if self.workers[&worker].reservations().is_empty() {
            return Vec::new();
        }
        let all = self.worker_mut(worker).set_reservations(Vec::new());
        let (dropped, kept): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| removed(self, one));
        for gone in &dropped {
            if !kept.iter().any(|one| one.until == gone.until) {
                self.deadlines
                    .cancel(gone.until, Deadline::Reservation(worker));
            }
            let last = !kept.iter().any(|one| one.job == gone.job);
            if let Some(job) = self.jobs.get_mut(&gone.job) {
                job.slots.drop_reservation(gone.kind, worker, last);
                self.touch(gone.job);
            }
        }
        self.worker_mut(worker).set_reservations(kept);
        dropped
    }
}
