//! Forgets lost workers, except for their ids, when nothing refers to them.

use crate::cluster::Cluster;
use crate::ids::WorkerId;

impl Cluster {
    /// Forgets the lost workers that nothing refers to. A job that is being stopped still refers to the
    /// workers with its outputs.
    pub fn forget_lost_workers(&mut self) {
        if self.departures.lost().is_empty() {
            return;
        }
        let jobs = &self.jobs;
        let kept = |id: &WorkerId| {
            jobs.values()
                .any(|job| job.outputs_on(*id).next().is_some())
        };
        let forgotten: Vec<WorkerId> = self
            .departures
            .lost()
            .iter()
            .copied()
            .filter(|id| !kept(id))
            .collect();
        for id in forgotten {
            let Some(worker) = self.workers.remove(&id) else {
                continue;
            };
            if self.quarantine.cleared() == Some(id) {
                self.quarantine.clear(None);
            }
            self.departures.forget(id, worker.has_left());
        }
    }
}
