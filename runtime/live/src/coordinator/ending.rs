//! The end of a job beside the loop: its output committed or removed, which may take a while.
//!
//! Owns what becomes of an output directory when the engine has forgotten its job. Every step can be done again after a
//! restart of the coordinator. Does not own the steps themselves (`output`).

use std::time::Duration;

use napreduce_core::{JobId, JobOutcome};

use super::clock::unix_micros;
use super::daemon::{Coordinator, Input};
use super::history::{self, EndedJob};
use super::job::LiveJob;
use crate::body::PartOutput;
use crate::client::{JobDetail, JobPhase};
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

impl Coordinator {
    /// Commits or discards the output beside the loop; by now no process of the job is left.
    pub(super) fn start_ending(&mut self, id: JobId) {
        let Some(job) = self.brain.jobs.get(&id).cloned() else { return };
        let unclaimed = || Err(format!("the output directory of {id} is not claimed"));
        let claim = self.claims.remove(&id).unwrap_or_else(unclaimed);
        let path = self.lasting.as_ref().map(|lasting| lasting.history.path(id));
        let commit_try = if self.resumed.remove(&id) { CommitTry::Again } else { CommitTry::First };
        let detail = self.detail(&job);
        let own = self.own.clone();
        tokio::task::spawn_blocking(move || {
            let wall = Duration::from_micros(unix_micros().saturating_sub(job.submitted_micros));
            let end = end_job(&job, claim, commit_try, wall);
            let ended = EndedJob::new(job.accepted.token, end.clone(), ended_detail(detail, &end));
            let kept = path.map_or(Ok(()), |path| {
                history::write(&path, &ended)
                    .map_err(|error| format!("cannot write {}: {error}", path.display()))
            });
            // A coordinator that has ended does it again when it is back.
            let _ = own.send(Input::Ended { job: id, ended: Box::new(ended), kept });
        });
    }

    pub(super) fn on_ended(&mut self, job: JobId, ended: EndedJob, kept: Result<(), String>) {
        self.brain.jobs.remove(&job);
        self.pinned.remove(&job);
        if let Err(error) = kept {
            self.say(&format!("{job} is left out of the history: {error}"));
        }
        if let Some(lasting) = &mut self.lasting {
            let remarks = lasting.history.add(&ended);
            remarks.iter().for_each(|remark| self.say(remark));
            self.say(&format!("{job} {}", ended.detail.summary.phase.in_words()));
        }
        if let Some(followed) = self.followed.remove(&job) {
            followed.progress.send_replace(ended.detail.summary.progress);
            followed.end.send_replace(Some(ended.end));
        }
    }
}

/// What there is to say of a job when its output is in place or gone.
fn ended_detail(mut detail: JobDetail, end: &JobEnd) -> JobDetail {
    let (phase, reason) = match end {
        JobEnd::Succeeded(report) => {
            detail.parts.clone_from(&report.parts);
            (JobPhase::Succeeded, None)
        }
        JobEnd::Failed { reason, .. } => (JobPhase::Failed, Some(reason.clone())),
        JobEnd::Killed { reason, .. } => (JobPhase::Killed, Some(reason.clone())),
    };
    detail.summary.phase = phase;
    detail.summary.reason = reason;
    detail.summary.ended_millis = Some(unix_micros() / 1_000);
    detail
}
