//! Held and reserved slots. The counts of a worker, of a job and of the cluster change together here.

use crate::cluster::{Cluster, Deadline, Reservation};
use crate::ids::{AttemptId, JobId, TaskKind, WorkerId};

impl Cluster {
    /// Gives a slot to an attempt of a job, preferably a reserved one. Returns the attempt that gave up the
    /// slot for the job, if any.
    pub fn occupy(&mut self, worker: WorkerId, kind: TaskKind, job: JobId) -> Option<AttemptId> {
        let mut used = None;
        self.drop_reservations(worker, |_, kept| {
            let mine = kept.job == job && kept.kind == kind && used.is_none();
            if mine {
                used = Some(kept.of);
            }
            mine
        });
        let known = self.workers.get_mut(&worker).expect("workers are never forgotten");
        self.slots.occupy(known, kind);
        self.job_mut(job).slots.occupy(kind);
        self.touch(job);
        used.flatten()
    }

    /// Takes back the slot of an attempt of a job.
    pub fn vacate(&mut self, worker: WorkerId, kind: TaskKind, job: JobId) {
        let known = self.workers.get_mut(&worker).expect("workers are never forgotten");
        self.slots.vacate(known, kind);
        self.job_mut(job).slots.vacate(kind);
        self.touch(job);
    }

    /// Updates the lists of slots after a worker started or stopped taking attempts.
    pub fn list_worker(&mut self, worker: WorkerId) {
        let known = self.workers.get_mut(&worker).expect("workers are never forgotten");
        self.slots.list(known);
    }

    /// Reserves a free slot for a job until a time.
    pub fn reserve(&mut self, worker: WorkerId, reservation: Reservation) {
        self.deadlines.set(reservation.until, Deadline::Reservation(worker));
        self.worker_mut(worker).reserve(reservation);
        let job = self.job_mut(reservation.job);
        job.slots.reserve(reservation.kind, worker);
        self.touch(reservation.job);
    }

    /// Drops the reservations on a worker for which `unwanted` returns true.
    pub fn drop_reservations(
        &mut self,
        worker: WorkerId,
        mut unwanted: impl FnMut(&Cluster, &Reservation) -> bool,
    ) {
        if self.workers[&worker].reservations().is_empty() {
            return;
        }
        let all = self.worker_mut(worker).set_reservations(Vec::new());
        let (dropped, kept): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| unwanted(self, one));
        for gone in &dropped {
            if !kept.iter().any(|one| one.until == gone.until) {
                self.deadlines.cancel(gone.until, Deadline::Reservation(worker));
            }
            let last = !kept.iter().any(|one| one.job == gone.job);
            if let Some(job) = self.jobs.get_mut(&gone.job) {
                job.slots.drop_reservation(gone.kind, worker, last);
                self.touch(gone.job);
            }
        }
        self.worker_mut(worker).set_reservations(kept);
    }
}
