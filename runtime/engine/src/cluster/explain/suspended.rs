//! Explanations for suspended attempts: who suspended them, for which job, since when, and what must happen
//! before they continue.

use super::{Reason, ReasonCode, seconds};
use crate::cluster::{Attempt, Cluster, Job};
use crate::ids::{AttemptId, TaskKind};
use crate::preemption::Requester;
use crate::states::AttemptState;

/// How many attempts are named; the rest are counted.
const NAMED: usize = 5;

/// Returns who suspended an attempt, when, for which job and why, and what must happen before it continues.
pub(super) fn why(cluster: &Cluster, job: &Job, attempt: &Attempt) -> Option<String> {
    let suspension = attempt.suspension()?;
    let since = seconds(cluster.now.since(suspension.since));
    let by = match suspension.by {
        Requester::Policy => "the scheduler",
        Requester::Operator => "an operator",
        Requester::Engine => "the engine",
    };
    let whom = suspension
        .beneficiary
        .map_or_else(String::new, |job| format!(" for {job}"));
    Some(format!(
        "suspended {since} ago by {by}{whom}: {}; {}",
        suspension.reason,
        what_next(job, attempt)
    ))
}

/// Returns what must happen before a suspended attempt continues.
fn what_next(job: &Job, attempt: &Attempt) -> String {
    let kind = attempt.id.task.kind;
    let worker = attempt.worker;
    if attempt.saving.is_some() {
        format!(
            "it finishes its record or group in the next free {kind} slot of {worker} and is saved then"
        )
    } else if attempt.is_held() {
        "it continues when an operator resumes it".to_owned()
    } else if job.pause.is_some() {
        "it continues when an operator resumes its job".to_owned()
    } else if attempt.is_recalled() {
        format!("it continues in the next free {kind} slot of {worker}")
    } else {
        format!(
            "it continues in the next {kind} slot of {worker} that the scheduler gives {}",
            job.id
        )
    }
}

/// Returns sentences about the suspended attempts of a kind: the first few in full, the rest as a count.
pub(super) fn of_job(cluster: &Cluster, job: &Job, kind: TaskKind) -> Vec<Reason> {
    let stopped = |id: &AttemptId| cluster.attempts[id].state == AttemptState::Suspended;
    let all: Vec<AttemptId> = job.attempts_of_kind(kind).filter(stopped).collect();
    let named = all.iter().take(NAMED).filter_map(|id| {
        let attempt = &cluster.attempts[id];
        let text = format!(
            "{id} on {} is suspended: {}",
            attempt.worker,
            why(cluster, job, attempt)?
        );
        let code = if attempt.is_held() {
            ReasonCode::HeldByOperator
        } else {
            ReasonCode::Suspended
        };
        Some(Reason::new(code, text))
    });
    let mut sentences: Vec<Reason> = named.collect();
    if all.len() > NAMED {
        let text = format!("{} more {kind} attempts are suspended", all.len() - NAMED);
        sentences.push(Reason::new(ReasonCode::Suspended, text));
    }
    sentences
}
