//! A job's preemption history: one entry per request, resume and restore, with its cause and cost.

use napreduce_engine::{AttemptId, JobId, Primitive, WorkerId, listed};
use serde::{Deserialize, Serialize};

listed! {
    /// How a preemption request ended.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub enum PreemptionEnd {
        /// The process is stopped, verified.
        Suspended = "suspended",
        /// The work is saved and the process has exited.
        Checkpointed = "checkpointed",
        /// The process was killed.
        Killed = "killed",
        /// The task finished first.
        Finished = "finished",
        /// The attempt failed or its worker was lost first.
        Ended = "ended",
        /// The request was cancelled or impossible; the attempt continued.
        Withdrawn = "withdrawn",
    }
}

/// A request to preempt an attempt. Times are in microseconds since 1970 by the coordinator's clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreemptionSummary {
    /// The victim.
    pub attempt: AttemptId,
    /// Its worker.
    pub worker: WorkerId,
    /// The primitive used, after applying the settings.
    pub primitive: Primitive,
    /// The primitive requested.
    pub asked: Primitive,
    /// The requester: the scheduler's name, `operator`, or `engine` for its settings.
    pub by: String,
    /// The reason, for people.
    pub reason: String,
    /// The job that receives the slot.
    pub beneficiary: Option<JobId>,
    /// When it was decided.
    pub requested_micros: u64,
    /// When it was sent to the worker; delayed if the attempt had to start or commit first.
    pub ordered_micros: Option<u64>,
    /// When the slot was known to be free.
    pub freed_micros: Option<u64>,
    /// The beneficiary's attempt that took the slot, by launch or resume, if any.
    #[serde(default)]
    pub used_by: Option<AttemptId>,
    /// When that attempt was ordered.
    #[serde(default)]
    pub used_micros: Option<u64>,
    /// Why the beneficiary did not take the slot, if it did not: the preemption was in vain.
    #[serde(default)]
    pub unused: Option<String>,
    /// How it ended, if it has.
    pub end: Option<PreemptionEnd>,
    /// From the order's arrival at the worker until it was carried out, by the worker's clock.
    pub worker_micros: Option<u64>,
    /// The attempt's active time since its launch, without suspensions.
    pub active_millis: u64,
    /// How long the attempt was suspended, once that is over.
    pub suspended_millis: Option<u64>,
    /// Its resident memory when it was stopped.
    pub resident_bytes: u64,
    /// Its peak swap usage, as far as known.
    pub swapped_bytes: u64,
    /// Memory swapped out because of it.
    pub swapped_out_bytes: u64,
    /// Size of its checkpoint.
    pub checkpoint_bytes: u64,
    /// Work that a kill at this moment would have lost, without the work that earlier preemptions of the
    /// attempt saved; zero if it was lost later.
    pub work_saved_millis: u64,
    /// Work that has to be redone.
    pub work_lost_millis: u64,
}

impl PreemptionSummary {
    /// Creates a request as of now; the requester adds its name and reason.
    pub fn wanted(
        at_micros: u64,
        attempt: AttemptId,
        worker: WorkerId,
        primitive: Primitive,
    ) -> PreemptionSummary {
        PreemptionSummary {
            attempt,
            worker,
            primitive,
            asked: primitive,
            by: String::new(),
            reason: String::new(),
            beneficiary: None,
            requested_micros: at_micros,
            ordered_micros: None,
            freed_micros: None,
            used_by: None,
            used_micros: None,
            unused: None,
            end: None,
            worker_micros: None,
            active_millis: 0,
            suspended_millis: None,
            resident_bytes: 0,
            swapped_bytes: 0,
            swapped_out_bytes: 0,
            checkpoint_bytes: 0,
            work_saved_millis: 0,
            work_lost_millis: 0,
        }
    }
}

/// A resume of a suspended attempt. Times as in `PreemptionSummary`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumeSummary {
    pub attempt: AttemptId,
    /// Its worker.
    pub worker: WorkerId,
    /// When it was sent to the worker.
    pub ordered_micros: u64,
    /// When it was known to run again.
    pub resumed_micros: Option<u64>,
    /// From the order's arrival at the worker until the process continued, by the worker's clock.
    pub worker_micros: Option<u64>,
    /// How long it was suspended.
    pub suspended_millis: u64,
    /// Its swapped memory at the order.
    pub swapped_bytes: u64,
    /// Memory swapped in until it continued.
    pub swapped_in_bytes: u64,
}

/// An attempt launched from a checkpoint. Times as in `PreemptionSummary`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreSummary {
    /// The new attempt.
    pub attempt: AttemptId,
    /// The attempt that wrote the checkpoint.
    pub from: AttemptId,
    /// Its worker.
    pub worker: WorkerId,
    /// The worker that wrote the checkpoint.
    pub from_worker: Option<WorkerId>,
    /// When it was launched.
    pub ordered_micros: u64,
    /// When it was known to have made progress.
    pub restored_micros: Option<u64>,
    /// From the order's arrival at the worker to the first new record or group, by the worker's clock.
    pub worker_micros: Option<u64>,
    /// Work of earlier attempts that was not redone.
    pub work_saved_millis: u64,
    /// Why it started from scratch instead, if it did.
    pub refused: Option<String>,
}
