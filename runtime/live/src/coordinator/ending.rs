//! The end of a job beside the loop: its output committed or removed, which may take a while.
//!
//! Owns what becomes of an output directory when the engine has forgotten its job. Every step can be done again after a
//! restart of the coordinator. Does not own the steps themselves (`output`).

use std::time::Duration;

use napreduce_core::JobOutcome;

use super::job::LiveJob;
use crate::body::PartOutput;
use crate::output::{CommitTry, CommittedPart, Manifest, OutputClaim, commit_job};
use crate::report::{JobEnd, JobReport, PartReport};

/// Commits or discards, blocking. `wall` is the time since the job was submitted.
///
/// `claim` is missing when the directory could not be claimed again after a restart, for the reason given.
pub(super) fn end_job(
    job: &LiveJob,
    claim: Result<OutputClaim, String>,
    commit_try: CommitTry,
    wall: Duration,
) -> JobEnd {
    let id = job.id();
    let outcome =
        job.outcome.clone().unwrap_or(JobOutcome::Killed { reason: "it was not decided".to_owned() });
    match (outcome, claim) {
        (JobOutcome::Succeeded, Ok(claim)) => commit(job, claim, commit_try, wall),
        (JobOutcome::Succeeded, Err(why)) => JobEnd::Failed { job: id, reason: why },
        (JobOutcome::Failed { reason }, claim) => JobEnd::Failed { job: id, reason: discard(claim, reason) },
        (JobOutcome::Killed { reason }, claim) => JobEnd::Killed { job: id, reason: discard(claim, reason) },
    }
}

fn commit(job: &LiveJob, claim: OutputClaim, commit_try: CommitTry, wall: Duration) -> JobEnd {
    let (id, plan) = (job.id(), &job.accepted.plan);
    let parts = job.parts().map(|(attempt, part)| {
        let name = claim.paths().part_name(attempt.task);
        let PartOutput { records, bytes, digest } = part;
        CommittedPart { attempt, report: PartReport { name, records, bytes, digest } }
    });
    let manifest =
        Manifest { job: id, name: plan.name.clone(), counters: job.counters(), parts: parts.collect() };
    match commit_job(&claim, &manifest, commit_try) {
        Ok(()) => JobEnd::Succeeded(JobReport {
            job: id,
            name: manifest.name,
            counters: manifest.counters,
            wall,
            parts: manifest.parts.into_iter().map(|part| part.report).collect(),
            output: plan.output.clone(),
        }),
        // The first error says more than a second one about the same directory.
        Err(error) => {
            let _ = claim.discard();
            JobEnd::Failed { job: id, reason: error.to_string() }
        }
    }
}

/// Removes what the job wrote; the reason, with what went wrong while removing.
fn discard(claim: Result<OutputClaim, String>, reason: String) -> String {
    let discarded = claim.and_then(|claim| claim.discard().map_err(|error| error.to_string()));
    match discarded {
        Ok(()) => reason,
        Err(error) => format!("{reason}; also: {error}"),
    }
}
