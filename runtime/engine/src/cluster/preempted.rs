//! What is stopped and what is to be stopped: the indices over suspended attempts and open requests.
//!
//! Owns which suspended attempts wait for a slot. Does not own who stops what, nor when.

use crate::cluster::Cluster;
use crate::ids::{AttemptId, WorkerId};
use crate::preemption::PreemptRequest;
use crate::states::AttemptState;

impl Cluster {
    /// An open request is there, or no longer: its victim's job and its beneficiary count it.
    pub fn list_request(&mut self, request: &PreemptRequest, there: bool) {
        let (kind, victim) = (request.attempt.task.kind, request.attempt.task.job);
        let counted = |count: &mut u32| *count = if there { *count + 1 } else { *count - 1 };
        counted(&mut self.freeing[kind]);
        if let Some(job) = self.jobs.get_mut(&victim) {
            counted(&mut job.requested[kind]);
            self.touch(victim);
        }
        if let Some(id) = request.beneficiary
            && let Some(job) = self.jobs.get_mut(&id)
        {
            counted(&mut job.promised[kind]);
            self.touch(id);
        }
    }

    /// Enters an attempt among those that are suspended and wait for a slot, or takes it out: it waits unless
    /// an operator holds it or its job.
    pub fn relist(&mut self, id: AttemptId) {
        let attempt = &self.attempts[&id];
        let (worker, stopped) = (attempt.worker, attempt.state == AttemptState::Suspended);
        let waits = stopped && !attempt.held && self.job(id.task.job).held.is_none();
        let recalled = waits && attempt.recalled;
        self.list_suspended(id, worker, waits);
        if recalled {
            self.recalled.insert(id);
        }
    }

    /// A suspended attempt that waits for a slot is there, or no longer.
    pub fn list_suspended(&mut self, id: AttemptId, worker: WorkerId, there: bool) {
        let kind = id.task.kind;
        if !there {
            self.recalled.remove(&id);
        }
        let listed = &mut self.job_mut(id.task.job).suspended[kind];
        let changed = if there { listed.insert((worker, id)) } else { listed.remove(&(worker, id)) };
        if !changed {
            return;
        }
        let count = self.suspended_on[kind].entry(worker).or_default();
        *count = if there { *count + 1 } else { *count - 1 };
        if *count == 0 {
            self.suspended_on[kind].remove(&worker);
        }
    }
}
