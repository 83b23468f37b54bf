//! What a job's history says of preemption: who took which slot from whom, how, and what that cost.
//!
//! Owns plain data, one entry for each request, each continuation and each restored attempt. Does not own
//! where it is known from (`coordinator::preemptions`) nor how it is printed.

use napreduce_engine::{AttemptId, JobId, Primitive, WorkerId, listed};
use serde::{Deserialize, Serialize};

listed! {
    /// How a request to preempt came to its end.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub enum PreemptionEnd {
        /// The process is verified stopped.
        Suspended = "suspended",
        /// The work is saved and the process is gone.
        Checkpointed = "checkpointed",
        /// The process was killed.
        Killed = "killed",
        /// The task was done first.
        Finished = "finished",
        /// The attempt failed, or its worker was lost, first.
        Ended = "ended",
        /// Whoever asked wanted it no more, or it could not be done; the attempt went on.
        Withdrawn = "withdrawn",
    }
}

/// A request to take the slot of an attempt. Times are microseconds since 1970 by the coordinator's
/// clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreemptionSummary {
    /// The victim.
    pub attempt: AttemptId,
    /// Where it ran.
    pub worker: WorkerId,
    /// How, after what the settings made of the wish.
    pub primitive: Primitive,
    /// How it was asked for.
    pub asked: Primitive,
    /// The scheduler's name, `operator`, or `engine`: by its settings.
    pub by: String,
    /// Why, for people.
    pub reason: String,
    /// The job that the slot is freed for.
    pub beneficiary: Option<JobId>,
    /// When it was decided.
    pub requested_micros: u64,
    /// When the worker was told; later than the request when the attempt had to start or to commit first.
    pub ordered_micros: Option<u64>,
    /// When the slot was known to be free.
    pub freed_micros: Option<u64>,
    /// The attempt of the job it was freed for that took the slot, by launch or resume, when one has.
    #[serde(default)]
    pub used_by: Option<AttemptId>,
    /// When that attempt was told.
    #[serde(default)]
    pub used_micros: Option<u64>,
    /// How it came to its end, when it has.
    pub end: Option<PreemptionEnd>,
    /// From the order's arrival at the worker until it was carried out, by the worker's clock.
    pub worker_micros: Option<u64>,
    /// How long the attempt had been at work since its launch, without the time it was suspended.
    pub active_millis: u64,
    /// How long a suspended attempt was, once it is not any more.
    pub suspended_millis: Option<u64>,
    /// Its memory when it was stopped.
    pub resident_bytes: u64,
    /// What of it was in swap, at most, as far as is known.
    pub swapped_bytes: u64,
    /// What went out to swap because of it.
    pub swapped_out_bytes: u64,
    /// The files of its checkpoint.
    pub checkpoint_bytes: u64,
    /// Work that a kill would have lost at this moment, if it was saved.
    pub work_saved_millis: u64,
    /// Work that has to be done again.
    pub work_lost_millis: u64,
}

impl PreemptionSummary {
    /// A slot that is wanted back as of now; by whom and why, whoever wants it adds.
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

/// A suspended attempt that goes on. Times likewise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumeSummary {
    pub attempt: AttemptId,
    /// Where it is.
    pub worker: WorkerId,
    /// When the worker was told.
    pub ordered_micros: u64,
    /// When it was known to run again.
    pub resumed_micros: Option<u64>,
    /// From the order's arrival at the worker until its process went on, by the worker's clock.
    pub worker_micros: Option<u64>,
    /// How long it had been suspended.
    pub suspended_millis: u64,
    /// What of it was in swap when it was told to go on.
    pub swapped_bytes: u64,
    /// What came back from there until it went on.
    pub swapped_in_bytes: u64,
}

/// An attempt that starts from a checkpoint. Times likewise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreSummary {
    /// The new attempt.
    pub attempt: AttemptId,
    /// The one whose checkpoint it starts from.
    pub from: AttemptId,
    /// Where it was launched.
    pub worker: WorkerId,
    /// Where the checkpoint was written.
    pub from_worker: Option<WorkerId>,
    /// When it was launched.
    pub ordered_micros: u64,
    /// When it was known to have done something new.
    pub restored_micros: Option<u64>,
    /// From the order's arrival at the worker to the first new record or group, by the worker's clock.
    pub worker_micros: Option<u64>,
    /// Work of earlier attempts that it did not have to do again.
    pub work_saved_millis: u64,
    /// Why it started from scratch instead, if it did.
    pub refused: Option<String>,
}
