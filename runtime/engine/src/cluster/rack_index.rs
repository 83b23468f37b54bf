//! Which pending tasks have their input, or checkpoint, on which rack.
//!
//! Owns the index by rack, in step with that by worker. While all workers are on one rack nothing is indexed:
//! it would hold every task that prefers any worker.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::cluster::racks::{RackNumber, Racks};
use crate::cluster::task::Phase;
use crate::cluster::{Cluster, Job};
use crate::ids::{TaskId, TaskKind, WorkerId};
use crate::states::WorkerState;

impl Phase {
    /// Enters a pending task on the racks of the workers that hold its input.
    pub fn add_on_racks(&mut self, index: u32, holders: &[WorkerId], racks: &Racks) {
        if racks.are_several() {
            for rack in holders.iter().filter_map(|worker| racks.of(*worker)) {
                self.on_rack.entry(rack).or_default().insert(index);
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

    /// The index by rack, from that by worker.
    fn on_racks(&self, racks: &Racks) -> BTreeMap<RackNumber, BTreeSet<u32>> {
        let mut on_rack = BTreeMap::<RackNumber, BTreeSet<u32>>::new();
        for (worker, tasks) in self.local.iter().filter(|_| racks.are_several()) {
            if let Some(rack) = racks.of(*worker) {
                on_rack.entry(rack).or_default().extend(tasks);
            }
        }
        on_rack
    }
}

impl Job {
    /// Whether the workers are on several racks: on the only one every task is near.
    pub fn knows_racks(&self) -> bool {
        self.racks.are_several()
    }

    /// A task to launch on a worker whose input, or checkpoint, is on the worker's rack or there itself; none
    /// while there is only one rack.
    pub fn next_on_rack(&self, kind: TaskKind, worker: WorkerId) -> Option<TaskId> {
        self.next_of(kind, |phase| phase.next_on_rack(worker, &self.racks))
    }

    /// It knows these racks from now on, and nothing of those before.
    pub(crate) fn learn_racks(&mut self, racks: &Arc<Racks>) {
        self.racks = Arc::clone(racks);
        for kind in TaskKind::ALL {
            let on_rack = self.phases[kind].on_racks(racks);
            self.phases[kind].on_rack = on_rack;
        }
    }

    /// A worker is on a rack now; there were several before.
    fn worker_came(&mut self, worker: WorkerId, rack: RackNumber) {
        for kind in TaskKind::ALL {
            let Phase { local, on_rack, .. } = &mut self.phases[kind];
            if let Some(tasks) = local.get(&worker) {
                on_rack.entry(rack).or_default().extend(tasks);
            }
        }
    }

    /// A worker is on its rack no more; there are several still.
    fn worker_went(&mut self, worker: WorkerId, rack: RackNumber) {
        for kind in TaskKind::ALL {
            let tasks: Vec<u32> =
                self.phases[kind].local.get(&worker).into_iter().flatten().copied().collect();
            for index in tasks {
                let holders = self.holders(TaskId { job: self.id, kind, index });
                if !holders.iter().any(|other| self.racks.of(*other) == Some(rack)) {
                    self.phases[kind].off(rack, index);
                }
            }
        }
    }
}

impl Cluster {
    /// A worker came up, and says on which rack it is.
    pub fn enter_rack(&mut self, worker: WorkerId) {
        let name = self.workers[&worker].rack.clone();
        self.change_racks(
            |racks| racks.enter(worker, &name),
            |job, racks| {
                if let Some(rack) = racks.of(worker) {
                    job.worker_came(worker, rack);
                }
            },
        );
    }

    /// A worker is lost, or has left.
    pub fn leave_rack(&mut self, worker: WorkerId) {
        let Some(rack) = self.racks.of(worker) else { return };
        self.change_racks(|racks| racks.leave(worker), |job, _| job.worker_went(worker, rack));
    }

    fn change_racks(&mut self, change: impl FnOnce(&mut Racks), small: impl Fn(&mut Job, &Racks)) {
        let before = self.racks.are_several();
        // While jobs look at the racks they cannot be changed without a copy.
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

    /// Finds anew who is on which rack, after everything else was made from an image.
    pub fn find_racks(&mut self) {
        let mut racks = Racks::default();
        for (id, worker) in self.workers.iter().filter(|(_, worker)| worker.state != WorkerState::Lost) {
            racks.enter(id, &worker.rack);
        }
        self.racks = Arc::new(racks);
        let racks = Arc::clone(&self.racks);
        for id in self.jobs.keys() {
            self.job_mut(id).learn_racks(&racks);
        }
    }

    /// Whether all of it is as it would be found anew.
    pub fn check_racks(&self) -> Result<(), String> {
        for (id, worker) in self.workers.iter() {
            let expected = (worker.state != WorkerState::Lost).then_some(worker.rack.as_str());
            if self.racks.name_of(id) != expected {
                return Err(format!("{id} is not on the rack that it says"));
            }
        }
        if let Some(worker) = self.racks.workers().find(|id| !self.workers.contains_key(id)) {
            return Err(format!("{worker} is on a rack, but no more"));
        }
        for job in self.jobs.values() {
            let known = Arc::ptr_eq(&job.racks, &self.racks);
            let indexed = |kind| job.phases[kind].on_rack == job.phases[kind].on_racks(&self.racks);
            if !known || !TaskKind::ALL.into_iter().all(indexed) {
                return Err(format!("{}: its tasks are on other racks than their inputs", job.id));
            }
        }
        Ok(())
    }
}
