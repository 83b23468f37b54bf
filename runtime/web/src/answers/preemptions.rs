//! Preemptions, continuations and restores in a job's history.
//!
//! Owns the names of the fields. Does not own the lines that people read (`nap`).

use napreduce_history::{LedgerEntry, Sequel};
use napreduce_protocol::{PreemptionSummary, RestoreSummary, ResumeSummary};

answer! {
    /// A request to take the slot of an attempt.
    pub struct PreemptionAnswer from |entry: &LedgerEntry<'_>| {
        /// The victim.
        pub attempt: String = entry.preemption.attempt.to_string(),
        pub worker: String = entry.preemption.worker.to_string(),
        /// How, after what the settings made of the wish.
        pub primitive: String = entry.preemption.primitive.to_string(),
        /// How it was asked for.
        pub asked: String = entry.preemption.asked.to_string(),
        /// The scheduler's name, `operator`, or `engine`: by its settings.
        pub by: String = entry.preemption.by.clone(),
        pub reason: String = entry.preemption.reason.clone(),
        /// The job that the slot is freed for.
        pub beneficiary: Option<String> = entry.preemption.beneficiary.map(|job| job.to_string()),
        pub requested_micros: u64 = entry.preemption.requested_micros,
        pub ordered_micros: Option<u64> = entry.preemption.ordered_micros,
        pub freed_micros: Option<u64> = entry.preemption.freed_micros,
        /// The attempt of the beneficiary that took the slot, when one has.
        pub used_by: Option<String> = entry.preemption.used_by.map(|attempt| attempt.to_string()),
        pub used_micros: Option<u64> = entry.preemption.used_micros,
        /// How long the slot stood empty for it.
        pub kept_millis: Option<u64> = kept_millis(entry.preemption),
        /// What became of the work: `waiting`, `resumed`, `restored` or `lost`; nothing, if the slot was not
        /// taken, or the job ended first.
        pub given_back: Option<&'static str> = entry.sequel.as_ref().map(Sequel::in_words),
        /// When its process was told to go on.
        pub resumed_micros: Option<u64> = match entry.sequel {
            Some(Sequel::Resumed(resume)) => Some(resume.ordered_micros),
            _ => None,
        },
        /// The attempt that went on from its checkpoint.
        pub restored_by: Option<String> = match entry.sequel {
            Some(Sequel::Restored(restore)) => Some(restore.attempt.to_string()),
            _ => None,
        },
        /// `suspended`, `checkpointed`, `killed`, `finished`, `ended` or `withdrawn`.
        pub end: Option<&'static str> = entry.preemption.end.map(|end| end.in_words()),
        /// From the order's arrival at the worker until it was carried out, by the worker's clock.
        pub worker_micros: Option<u64> = entry.preemption.worker_micros,
        pub active_millis: u64 = entry.preemption.active_millis,
        pub suspended_millis: Option<u64> = entry.preemption.suspended_millis,
        pub resident_bytes: u64 = entry.preemption.resident_bytes,
        pub swapped_bytes: u64 = entry.preemption.swapped_bytes,
        pub swapped_out_bytes: u64 = entry.preemption.swapped_out_bytes,
        pub checkpoint_bytes: u64 = entry.preemption.checkpoint_bytes,
        pub work_saved_millis: u64 = entry.preemption.work_saved_millis,
        pub work_lost_millis: u64 = entry.preemption.work_lost_millis,
    }

    /// A suspended attempt that goes on.
    pub struct ResumeAnswer from |known: &ResumeSummary| {
        pub attempt: String = known.attempt.to_string(),
        pub worker: String = known.worker.to_string(),
        pub ordered_micros: u64 = known.ordered_micros,
        pub resumed_micros: Option<u64> = known.resumed_micros,
        pub worker_micros: Option<u64> = known.worker_micros,
        pub suspended_millis: u64 = known.suspended_millis,
        pub swapped_bytes: u64 = known.swapped_bytes,
        pub swapped_in_bytes: u64 = known.swapped_in_bytes,
    }

    /// An attempt that starts from a checkpoint.
    pub struct RestoreAnswer from |known: &RestoreSummary| {
        pub attempt: String = known.attempt.to_string(),
        /// The attempt whose work it goes on with.
        pub from: String = known.from.to_string(),
        pub worker: String = known.worker.to_string(),
        pub from_worker: Option<String> = known.from_worker.map(|worker| worker.to_string()),
        pub ordered_micros: u64 = known.ordered_micros,
        pub restored_micros: Option<u64> = known.restored_micros,
        pub worker_micros: Option<u64> = known.worker_micros,
        pub work_saved_millis: u64 = known.work_saved_millis,
        /// Why it began anew instead.
        pub refused: Option<String> = known.refused.clone(),
    }
}

fn kept_millis(known: &PreemptionSummary) -> Option<u64> {
    Some(known.used_micros?.saturating_sub(known.freed_micros?) / 1_000)
}
