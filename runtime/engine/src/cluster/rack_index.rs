//! An index of pending tasks by the racks that hold their input or checkpoint. It is empty while all workers
//! are on one rack, because it would contain every task that prefers any worker.

use std::sync::Arc;

use crate::cluster::racks::{RackNumber, Racks};
use crate::cluster::task::Phase;
use crate::cluster::{Cluster, Job};
use crate::ids::{TaskId, TaskKind, WorkerId};
use crate::sorted::{SortedMap, SortedSet};
use crate::states::WorkerState;

impl Phase {
    /// Adds a pending task to the racks of the workers that hold its input.
    pub fn add_on_racks(&mut self, index: u32, holders: &[WorkerId], racks: &Racks) {
        if racks.are_several() {
            for rack in holders.iter().filter_map(|worker| racks.of(*worker)) {
                self.on_rack.get_or_default(rack).insert(index);
            }
        }
    }

    pub fn remove_on_racks(&mut self, index: u32, holders: &[WorkerId], racks: &Racks) {
        if racks.are_several() {
            for rack in holders.iter().filter_map(|worker| racks.of(*worker)) {
                self.off(rack, index);
            }
        }
    }

    fn off(&mut self, rack: RackNumber, index: u32) {
        if let Some(tasks) = self.on_rack.get_mut(&rack) {
            tasks.remove(&index);
            if tasks.is_empty() {
                self.on_rack.remove(&rack);
            }
        }
    }

    /// Builds the index by rack from the index by worker.
    fn on_racks(&self, racks: &Racks) -> SortedMap<RackNumber, SortedSet<u32>> {
        let mut on_rack = SortedMap::<RackNumber, SortedSet<u32>>::new();
        for (worker, tasks) in self.local.iter().filter(|_| racks.are_several()) {
            if let Some(rack) = racks.of(*worker) {
                on_rack.get_or_default(rack).extend(tasks);
            }
        }
        on_rack
    }
}

impl Job {
    /// Returns whether the workers are on several racks; with one, every task is on the same rack.
    pub fn knows_racks(&self) -> bool {
        self.racks.are_several()
    }

    /// Returns a task to launch on a worker whose input or checkpoint is on the worker's rack or on the
    /// worker itself; `None` while there is only one rack.
    pub fn next_on_rack(&self, kind: TaskKind, worker: WorkerId) -> Option<TaskId> {
        self.next_of(kind, |phase| phase.next_on_rack(worker, &self.racks))
    }

    /// Replaces the racks and rebuilds the index.
    pub(crate) fn learn_racks(&mut self, racks: &Arc<Racks>) {
        self.racks = Arc::clone(racks);
        for kind in TaskKind::ALL {
            let on_rack = self.phases[kind].on_racks(racks);
            self.phases[kind].on_rack = on_rack;
        }
    }

    /// Adds a worker to a rack; there were several racks before.
    fn worker_came(&mut self, worker: WorkerId, rack: RackNumber) {
        for kind in TaskKind::ALL {
            let Phase { local, on_rack, .. } = &mut self.phases[kind];
            if let Some(tasks) = local.get(&worker) {
                on_rack.get_or_default(rack).extend(tasks);
            }
        }
    }

    /// Removes a worker from its rack; there are still several racks.
    fn worker_went(&mut self, worker: WorkerId, rack: RackNumber) {
        for kind in TaskKind::ALL {
            let tasks: Vec<u32> = self.phases[kind]
                .local
                .get(&worker)
                .into_iter()
                .flatten()
                .copied()
                .collect();
            for index in tasks {
                let holders = self.holders(TaskId {
                    job: self.id,
                    kind,
                    index,
                });
                if !holders
                    .iter()
                    .any(|other| self.racks.of(*other) == Some(rack))
                {
                    self.phases[kind].off(rack, index);
                }
            }
        }
    }
}

impl Cluster {
    /// Adds a worker that came up to its rack.
    pub fn enter_rack(&mut self, worker: WorkerId) {
        let name = self.workers[&worker].rack().to_owned();
        self.change_racks(
            |racks| racks.enter(worker, &name),
            |job, racks| {
                if let Some(rack) = racks.of(worker) {
                    job.worker_came(worker, rack);
                }
            },
        );
    }

    /// Removes a worker that is lost or has left.
    pub fn leave_rack(&mut self, worker: WorkerId) {
        let Some(rack) = self.racks.of(worker) else {
            return;
        };
        self.change_racks(
            |racks| racks.leave(worker),
            |job, _| job.worker_went(worker, rack),
        );
    }

    fn change_racks(&mut self, change: impl FnOnce(&mut Racks), small: impl Fn(&mut Job, &Racks)) {
        let before = self.racks.are_several();
        // Releases the references of the jobs, so that `make_mut` does not copy the racks.
        let nothing = Arc::default();
        for id in self.jobs.keys() {
            self.job_mut(id).racks = Arc::clone(&nothing);
        }
        change(Arc::make_mut(&mut self.racks));
        let racks = Arc::clone(&self.racks);
        for id in self.jobs.keys() {
            let job = self.job_mut(id);
            if before && racks.are_several() {
                job.racks = Arc::clone(&racks);
                small(job, &racks);
            } else if before || racks.are_several() {
                job.learn_racks(&racks);
            } else {
                job.racks = Arc::clone(&racks);
            }
        }
    }

    /// Rebuilds the racks, after everything else was restored from an image.
    pub fn find_racks(&mut self) {
        let mut racks = Racks::default();
        for (id, worker) in self
            .workers
            .iter()
            .filter(|(_, worker)| worker.state() != WorkerState::Lost)
        {
            racks.enter(id, worker.rack());
        }
        self.racks = Arc::new(racks);
        let racks = Arc::clone(&self.racks);
        for id in self.jobs.keys() {
            self.job_mut(id).learn_racks(&racks);
        }
    }

    /// Checks that the index equals a rebuilt one.
    pub fn check_racks(&self) -> Result<(), String> {
        for (id, worker) in self.workers.iter() {
            let expected = (worker.state() != WorkerState::Lost).then_some(worker.rack());
            if self.racks.name_of(id) != expected {
                return Err(format!("{id}: its rack and the index of racks disagree"));
            }
        }
        if let Some(worker) = self
            .racks
            .workers()
            .find(|id| !self.workers.contains_key(id))
        {
            return Err(format!(
                "{worker}: in the index of racks, but not registered"
            ));
        }
        for job in self.jobs.values() {
            let known = Arc::ptr_eq(&job.racks, &self.racks);
            let indexed = |kind| job.phases[kind].on_rack == job.phases[kind].on_racks(&self.racks);
            if !known || !TaskKind::ALL.into_iter().all(indexed) {
                return Err(format!(
                    "{}: its index of racks and its inputs disagree",
                    job.id
                ));
            }
        }
        Ok(())
    }
}
