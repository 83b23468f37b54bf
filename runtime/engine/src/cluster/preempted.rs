//! Open requests with their deadlines, and the indices over them and over suspended attempts, including which of those
//! wait for a slot.

use crate::cluster::{Cluster, Deadline};
use crate::ids::{AttemptId, WorkerId};
use crate::preemption::PreemptRequest;
use crate::settings::PreemptionSettings;
use crate::states::AttemptState;

impl Cluster {
    /// Adds a request for an attempt that has none, with its deadlines under these settings.
    pub fn add_request(&mut self, request: PreemptRequest, settings: &PreemptionSettings) {
        for (due, deadline) in Deadline::for_request(&request, settings) {
            self.deadlines.set(due, deadline);
        }
        self.list_request(&request, true);
        self.requests.insert(request);
    }

    /// Removes the request for an attempt, if there is one, with the deadlines that it has under these settings.
    pub fn remove_request(
        &mut self,
        id: AttemptId,
        settings: &PreemptionSettings,
    ) -> Option<PreemptRequest> {
        let request = self.requests.remove(&id)?;
        self.list_request(&request, false);
        for (due, deadline) in Deadline::for_request(&request, settings) {
            self.deadlines.cancel(due, deadline);
        }
        Some(request)
    }

    /// Adds or removes an open request in the counts of its victim's job and its beneficiary.
    pub fn list_request(&mut self, request: &PreemptRequest, there: bool) {
        let kind = request.attempt.task.kind;
        let victim = request.attempt.task.job;
        if let Some(job) = self.jobs.get_mut(&victim) {
            if there {
                job.slots.add_requested(kind);
            } else {
                job.slots.remove_requested(kind);
            }
            self.touch(victim);
        }
        if let Some(id) = request.beneficiary
            && let Some(job) = self.jobs.get_mut(&id)
        {
            if there {
                job.slots.add_promised(kind);
            } else {
                job.slots.remove_promised(kind);
            }
            self.touch(id);
        }
    }

    /// Updates whether an attempt is listed as suspended and waiting for a slot; it waits unless an operator
    /// holds it or its job.
    pub fn relist(&mut self, id: AttemptId) {
        let attempt = &self.attempts[&id];
        let worker = attempt.worker;
        let stopped = attempt.state == AttemptState::Suspended;
        let waits = stopped && !attempt.is_held() && self.job(id.task.job).pause.is_none();
        let recalled = (waits && attempt.is_recalled()) || (stopped && attempt.saving.is_some());
        self.list_suspended(id, worker, waits);
        if recalled {
            self.suspended.recall(id);
        }
    }

    /// Adds or removes a suspended attempt that waits for a slot.
    pub fn list_suspended(&mut self, id: AttemptId, worker: WorkerId, there: bool) {
        let kind = id.task.kind;
        if !there {
            self.suspended.drop_recall(id);
        }
        let listed = &mut self.job_mut(id.task.job).suspended[kind];
        let changed = if there {
            listed.insert((worker, id))
        } else {
            listed.remove(&(worker, id))
        };
        if changed && there {
            self.suspended.add(kind, worker);
        } else if changed {
            self.suspended.remove(kind, worker);
        }
    }
}
