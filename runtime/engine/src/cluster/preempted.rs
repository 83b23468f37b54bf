//! What is stopped and what is to be stopped: the indices over suspended attempts and open requests, and what
//! taking slots cost so far.
//!
//! Owns which suspended attempts wait for a slot. Does not own who stops what, nor when.

use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;
use crate::cluster::by_bytes::ByBytes;
use crate::ids::{AttemptId, WorkerId};
use crate::preemption::{PreemptRequest, Primitive};
use crate::states::AttemptState;
use crate::time::Span;

/// What taking a slot and giving it back took for tasks of one kind, smoothed: a quarter of the last time and
/// three of what was known before. Unknown until it happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredCosts {
    /// From the order to suspend to the slot that is free.
    pub suspend: Option<Span>,
    /// From the order to resume to work that goes on.
    pub resume: Option<Span>,
    /// From the order to checkpoint to the slot that is free.
    pub checkpoint: Option<Span>,
    /// From the order to launch from a checkpoint to work that goes on.
    pub restore: Option<Span>,
    /// From the order to kill to the slot that is free.
    #[serde(default)]
    pub kill: Option<Span>,
    /// Of a checkpoint and of a restore, by the memory that the tasks need.
    #[serde(default)]
    pub checkpoint_by_bytes: ByBytes,
    #[serde(default)]
    pub restore_by_bytes: ByBytes,
    /// What was chosen by its costs before.
    #[serde(default)]
    pub tried: Tried,
    /// From the order to launch from the beginning to the first work.
    #[serde(default)]
    pub launch: Option<Span>,
}

/// Ways to keep work that were chosen by their costs for tasks of a kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    pub suspend: bool,
    pub checkpoint: bool,
}

impl MeasuredCosts {
    /// What a primitive takes to free a slot, and then to go on with the work; as far as it is known.
    pub(crate) fn of(&self, primitive: Primitive) -> (Option<Span>, Option<Span>) {
        match primitive {
            Primitive::Suspend => (self.suspend, self.resume),
            Primitive::Checkpoint => (self.checkpoint, self.restore),
            Primitive::Wait | Primitive::Kill => (None, None),
        }
    }
}

/// Takes in how long something took once more.
pub(crate) fn smooth(known: &mut Option<Span>, took: Span) {
    let old = known.unwrap_or(took);
    *known = Some(Span(old.0 - old.0 / 4 + took.0 / 4));
}

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
