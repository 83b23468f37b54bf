//! Workers that join or are lost, and the consequences of a loss for their attempts and outputs.

use crate::cluster::{Cluster, Worker};
use crate::engine::Rules;
use crate::ids::{JobId, TaskId, TaskKind, WorkerId};
use crate::job::Slots;
use crate::states::{AttemptInput, JobState, WorkerInput, WorkerState};

impl Rules {
    pub(super) fn worker_joined(&mut self, id: WorkerId, slots: Slots, host: &str, rack: &str) {
        if self.step_worker(id, WorkerInput::Joined) {
            let shared = self.settings.shared_slots;
            let most_suspended = self.settings.preemption.suspended_max;
            let worker = self.cluster.worker_mut(id);
            worker.offer(slots, shared);
            worker.set_place(host, rack);
            worker.find_full(most_suspended);
            self.cluster.enter_rack(id);
            self.cluster.list_worker(id);
            self.cluster.workers_changed();
        }
    }

    pub(super) fn worker_lost(&mut self, id: WorkerId, crashed: bool) {
        if self.cluster.departures.has_left(id) {
            return;
        }
        if self
            .cluster
            .workers
            .get(&id)
            .is_some_and(|worker| worker.has_left())
        {
            self.cluster.forget(id);
            return;
        }
        if !self.step_worker(id, WorkerInput::Lost) {
            return;
        }
        self.cluster.departures.end_drain(id);
        self.cluster.drop_saving(id);
        self.cluster.list_worker(id);
        self.cluster.drop_reservations(id, |_, _| true);
        let suspects = if crashed && self.settings.crashes_max > 0 {
            self.cluster.note_crash(id)
        } else {
            Vec::new()
        };
        // Outputs first: an ending attempt frees nothing here, but a job without its map outputs must not
        // start reduces.
        self.take_back_outputs_of(id);
        let attempts: Vec<_> = self.cluster.workers[&id].attempts().collect();
        for attempt in attempts {
            self.attempt_exits(attempt, AttemptInput::WorkerLost, None);
        }
        self.cluster.exclusion_over(id);
        self.cluster.forget_unread(id);
        self.cluster.workers_changed();
        for task in suspects {
            self.suspect(task);
        }
        self.cluster.forget(id);
    }

    /// Makes every finished map pending again whose output was on this worker, in jobs that still need it.
    pub(super) fn take_back_outputs_of(&mut self, worker: WorkerId) {
        let active = self
            .cluster
            .jobs
            .values()
            .filter(|job| job.state == JobState::Active);
        let lost: Vec<(JobId, Vec<u32>)> = active
            .map(|job| (job.id, job.outputs_on(worker).collect::<Vec<u32>>()))
            .filter(|(_, indices)| !indices.is_empty())
            .collect();
        for (job, indices) in lost {
            for index in indices {
                self.take_back(TaskId {
                    job,
                    kind: TaskKind::Map,
                    index,
                });
            }
            self.cluster.refresh(job);
        }
    }

    /// Applies an input to a worker; returns false if the table has no row, which is counted and logged.
    pub(super) fn step_worker(&mut self, id: WorkerId, input: WorkerInput) -> bool {
        let never = if self.cluster.departures.is_forgotten(id) {
            WorkerState::Lost
        } else {
            WorkerState::Unknown
        };
        let before = self
            .cluster
            .workers
            .get(&id)
            .map_or(never, |worker| worker.state());
        match before.on(input) {
            Ok(after) => {
                if !self.cluster.workers.contains_key(&id) {
                    self.cluster.workers.insert(id, Worker::new(id));
                }
                self.cluster.worker_mut(id).set_state(after);
                if after == WorkerState::Lost {
                    self.cluster.leave_rack(id);
                }
                true
            }
            Err(error) => {
                self.cluster.tally.illegal_events += 1;
                self.warn(format!("{id}: {error}; ignored"));
                false
            }
        }
    }
}

impl Cluster {
    /// Records how much memory a worker's attempts use.
    pub(super) fn worker_has_memory(&mut self, id: WorkerId, bytes: u64) {
        match self.workers.get_mut(&id) {
            Some(worker) => worker.set_memory(bytes),
            None => self.tally.illegal_events += 1,
        }
    }

    /// Forgets a worker that will send nothing more; its id is kept.
    fn forget(&mut self, id: WorkerId) {
        self.departures.lose(id);
        self.forget_lost_workers();
    }
}
