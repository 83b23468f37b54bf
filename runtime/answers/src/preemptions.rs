//! Preemptions, resumes and restores of a job.

use napreduce_history::{LedgerEntry, Sequel};
use napreduce_protocol::{PreemptionSummary, RestoreSummary, ResumeSummary};
use schemars::JsonSchema;
use serde::Serialize;

/// A request to take the slot of an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PreemptionAnswer {
    /// The victim.
    pub attempt: String,
    pub worker: String,
    /// The primitive that was used, after the settings were applied.
    pub primitive: String,
    /// The requested primitive.
    pub asked: String,
    /// The scheduler's name, `operator`, or `engine` if the settings caused it.
    pub by: String,
    pub reason: String,
    /// The job that the slot was freed for.
    pub beneficiary: Option<String>,
    pub requested_micros: u64,
    pub ordered_micros: Option<u64>,
    pub freed_micros: Option<u64>,
    /// The beneficiary's attempt that got the slot.
    pub used_by: Option<String>,
    pub used_micros: Option<u64>,
    /// Time that the slot was empty for it.
    pub kept_millis: Option<u64>,
    /// Why the beneficiary did not take the slot, if it did not.
    pub unused: Option<String>,
    /// The fate of the work: `waiting`, `resumed`, `restored` or `lost`; `null` if the slot was not taken, or
    /// the job ended first.
    pub given_back: Option<&'static str>,
    /// When the process was ordered to resume.
    pub resumed_micros: Option<u64>,
    /// The attempt that restored the checkpoint.
    pub restored_by: Option<String>,
    /// `suspended`, `checkpointed`, `killed`, `finished`, `ended` or `withdrawn`.
    pub end: Option<&'static str>,
    /// Time from the order's arrival at the worker until it was carried out, by the worker's clock.
    pub worker_micros: Option<u64>,
    pub active_millis: u64,
    pub suspended_millis: Option<u64>,
    pub resident_bytes: u64,
    pub swapped_bytes: u64,
    pub swapped_out_bytes: u64,
    pub checkpoint_bytes: u64,
    pub work_saved_millis: u64,
    pub work_lost_millis: u64,
}

impl From<&LedgerEntry<'_>> for PreemptionAnswer {
    fn from(entry: &LedgerEntry<'_>) -> PreemptionAnswer {
        PreemptionAnswer {
            attempt: entry.preemption.attempt.to_string(),
            worker: entry.preemption.worker.to_string(),
            primitive: entry.preemption.primitive.to_string(),
            asked: entry.preemption.asked.to_string(),
            by: entry.preemption.by.clone(),
            reason: entry.preemption.reason.clone(),
            beneficiary: entry.preemption.beneficiary.map(|job| job.to_string()),
            requested_micros: entry.preemption.requested_micros,
            ordered_micros: entry.preemption.ordered_micros,
            freed_micros: entry.preemption.freed_micros,
            used_by: entry.preemption.used_by.map(|attempt| attempt.to_string()),
            used_micros: entry.preemption.used_micros,
            kept_millis: kept_millis(entry.preemption),
            unused: entry.preemption.unused.clone(),
            given_back: entry.sequel.as_ref().map(Sequel::in_words),
            resumed_micros: match entry.sequel {
                Some(Sequel::Resumed(resume)) => Some(resume.ordered_micros),
                _ => None,
            },
            restored_by: match entry.sequel {
                Some(Sequel::Restored(restore)) => Some(restore.attempt.to_string()),
                _ => None,
            },
            end: entry.preemption.end.map(|end| end.in_words()),
            worker_micros: entry.preemption.worker_micros,
            active_millis: entry.preemption.active_millis,
            suspended_millis: entry.preemption.suspended_millis,
            resident_bytes: entry.preemption.resident_bytes,
            swapped_bytes: entry.preemption.swapped_bytes,
            swapped_out_bytes: entry.preemption.swapped_out_bytes,
            checkpoint_bytes: entry.preemption.checkpoint_bytes,
            work_saved_millis: entry.preemption.work_saved_millis,
            work_lost_millis: entry.preemption.work_lost_millis,
        }
    }
}

/// The resume of a suspended attempt.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ResumeAnswer {
    pub attempt: String,
    pub worker: String,
    pub ordered_micros: u64,
    pub resumed_micros: Option<u64>,
    pub worker_micros: Option<u64>,
    pub suspended_millis: u64,
    pub swapped_bytes: u64,
    pub swapped_in_bytes: u64,
}

impl From<&ResumeSummary> for ResumeAnswer {
    fn from(known: &ResumeSummary) -> ResumeAnswer {
        ResumeAnswer {
            attempt: known.attempt.to_string(),
            worker: known.worker.to_string(),
            ordered_micros: known.ordered_micros,
            resumed_micros: known.resumed_micros,
            worker_micros: known.worker_micros,
            suspended_millis: known.suspended_millis,
            swapped_bytes: known.swapped_bytes,
            swapped_in_bytes: known.swapped_in_bytes,
        }
    }
}

/// The restore of a checkpoint by a new attempt.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RestoreAnswer {
    pub attempt: String,
    /// The attempt that wrote the checkpoint.
    pub from: String,
    pub worker: String,
    pub from_worker: Option<String>,
    pub ordered_micros: u64,
    pub restored_micros: Option<u64>,
    pub worker_micros: Option<u64>,
    pub work_saved_millis: u64,
    /// Why the attempt started over instead.
    pub refused: Option<String>,
}

impl From<&RestoreSummary> for RestoreAnswer {
    fn from(known: &RestoreSummary) -> RestoreAnswer {
        RestoreAnswer {
            attempt: known.attempt.to_string(),
            from: known.from.to_string(),
            worker: known.worker.to_string(),
            from_worker: known.from_worker.map(|worker| worker.to_string()),
            ordered_micros: known.ordered_micros,
            restored_micros: known.restored_micros,
            worker_micros: known.worker_micros,
            work_saved_millis: known.work_saved_millis,
            refused: known.refused.clone(),
        }
    }
}

fn kept_millis(known: &PreemptionSummary) -> Option<u64> {
    Some(known.used_micros?.saturating_sub(known.freed_micros?) / 1_000)
}
