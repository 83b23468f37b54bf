//! The open requests to preempt, and how many there are of each kind.

use crate::by_kind::ByKind;
use crate::ids::{AttemptId, JobId, TaskKind};
use crate::preemption::{Lapsed, PreemptRequest, RequestState};
use crate::sorted::SortedMap;

/// The open requests, by victim; an attempt has at most one.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    open: SortedMap<AttemptId, PreemptRequest>,
    count: ByKind<u32>,
}

impl Requests {
    /// Restores the requests of a snapshot; fails if there are two for one attempt.
    pub fn restore(requests: Vec<PreemptRequest>) -> Result<Requests, String> {
        let mut restored = Requests::default();
        for request in requests {
            let attempt = request.attempt;
            if restored.contains(&attempt) {
                return Err(format!("{attempt} occurs twice"));
            }
            restored.insert(request);
        }
        Ok(restored)
    }

    /// Adds a request for an attempt that has none.
    pub fn insert(&mut self, request: PreemptRequest) {
        self.count[request.attempt.task.kind] += 1;
        self.open.insert(request.attempt, request);
    }

    pub fn remove(&mut self, victim: &AttemptId) -> Option<PreemptRequest> {
        let request = self.open.remove(victim)?;
        self.count[victim.task.kind] -= 1;
        Some(request)
    }

    pub fn get(&self, victim: &AttemptId) -> Option<&PreemptRequest> {
        self.open.get(victim)
    }

    pub fn contains(&self, victim: &AttemptId) -> bool {
        self.open.contains_key(victim)
    }

    /// Returns the requests in the order of their victims.
    pub fn iter(&self) -> impl Iterator<Item = &PreemptRequest> + Clone {
        self.open.values()
    }

    /// Returns how many requests for attempts of a kind are open.
    pub fn count(&self, kind: TaskKind) -> u32 {
        self.count[kind]
    }

    /// Records that the order of a request, or the kill after its grace, was sent.
    pub fn advance(&mut self, victim: &AttemptId, state: RequestState) {
        if let Some(request) = self.open.get_mut(victim) {
            request.state = state;
        }
    }

    /// Removes the beneficiary from a request, which keeps the reason, and returns it.
    pub fn drop_beneficiary(&mut self, victim: &AttemptId, reason: &str) -> Option<JobId> {
        let request = self.open.get_mut(victim)?;
        let job = request.beneficiary.take()?;
        request.lapsed = Some(Lapsed {
            job,
            reason: reason.to_owned(),
        });
        Some(job)
    }
}
