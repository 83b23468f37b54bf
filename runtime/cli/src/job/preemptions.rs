//! Preemptions, continuations and restores in a job's history, for programs.
//!
//! Owns the names of the fields. Does not own the lines that people read (`detail`).

use napreduce_live::{PreemptionSummary, RestoreSummary, ResumeSummary};
use serde_json::{Value, json};

pub fn preemption(known: &PreemptionSummary) -> Value {
    json!({
        "attempt": known.attempt.to_string(),
        "worker": known.worker.to_string(),
        "primitive": known.primitive.to_string(),
        "asked": known.asked.to_string(),
        "by": known.by,
        "reason": known.reason,
        "beneficiary": known.beneficiary.map(|job| job.to_string()),
        "requested_micros": known.requested_micros,
        "ordered_micros": known.ordered_micros,
        "freed_micros": known.freed_micros,
        "end": known.end.map(|end| end.in_words()),
        "worker_micros": known.worker_micros,
        "active_millis": known.active_millis,
        "suspended_millis": known.suspended_millis,
        "resident_bytes": known.resident_bytes,
        "swapped_bytes": known.swapped_bytes,
        "swapped_out_bytes": known.swapped_out_bytes,
        "checkpoint_bytes": known.checkpoint_bytes,
        "work_saved_millis": known.work_saved_millis,
        "work_lost_millis": known.work_lost_millis,
    })
}

pub fn resume(known: &ResumeSummary) -> Value {
    json!({
        "attempt": known.attempt.to_string(),
        "worker": known.worker.to_string(),
        "ordered_micros": known.ordered_micros,
        "resumed_micros": known.resumed_micros,
        "worker_micros": known.worker_micros,
        "suspended_millis": known.suspended_millis,
        "swapped_bytes": known.swapped_bytes,
        "swapped_in_bytes": known.swapped_in_bytes,
    })
}

pub fn restore(known: &RestoreSummary) -> Value {
    json!({
        "attempt": known.attempt.to_string(),
        "from": known.from.to_string(),
        "worker": known.worker.to_string(),
        "from_worker": known.from_worker.map(|worker| worker.to_string()),
        "ordered_micros": known.ordered_micros,
        "restored_micros": known.restored_micros,
        "worker_micros": known.worker_micros,
        "work_saved_millis": known.work_saved_millis,
        "refused": known.refused,
    })
}
