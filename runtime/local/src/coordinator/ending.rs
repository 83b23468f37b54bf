//! The end of a job: its output is committed or removed outside the loop, since this may take long.
//!
//! Every step can be repeated after a restart of the coordinator.

use std::sync::Arc;
use std::time::Duration;

use napreduce_engine::{JobId, JobOutcome, Reason, ReasonCode};
use napreduce_history::EndedJob;
use napreduce_protocol::{JobDetail, JobEnd, JobPhase, JobSummary};
use tokio::time::Instant;

use super::claims::Claim;
use super::endings::Failed;
use super::entry::Extra;
use super::job::LiveJob;
use super::outside::run_outside;
use super::{Coordinator, Input, Tried};
use crate::clock::now;
use crate::output::{
    Disk, JobPaths, Manifest, OutputClaim, Owner, Resumed, Trouble, resume_output,
};
#[cfg(feature = "simulated")]
use crate::world::{Fact, note};
use crate::world::{Situation, reached};

/// Time for which an embedded run retries a commit before it fails.
const COMMIT_PATIENCE: Duration = Duration::from_secs(60);
/// Time for which a cluster retries removing a job's files from unreachable storage.
const DISCARD_PATIENCE: Duration = Duration::from_secs(10);

/// The end of a job, and the failures of its cleanup.
type Settled = (JobEnd, Vec<String>);

/// Commits or discards the output. Blocking; an error is transient.
fn settle(
    job: &LiveJob,
    claim: Option<Box<dyn OutputClaim>>,
    disk: &Disk,
    wall: Duration,
) -> Result<Settled, Trouble> {
    let output = job.accepted.plan.output.as_path();
    let resumed = match claim {
        Some(claim) => Ok(Resumed::Claimed(claim)),
        None => resume_output(disk, &job.accepted.claim_request(), job.accepted.claim),
    };
    let resumed = match resumed {
        Err(Trouble::Passing { what, away }) => return Err(Trouble::Passing { what, away }),
        resumed => resumed.map_err(|trouble| trouble.in_words(output)),
    };
    let outcome = job.outcome.clone().unwrap_or(JobOutcome::Killed {
        reason: "no outcome was recorded".to_owned(),
    });
    let Some(end) = job.end_without_report(outcome) else {
        return settle_success(job, resumed, wall);
    };
    if let Ok(Resumed::Claimed(claim)) = resumed {
        match claim.discard() {
            Err(Trouble::Passing { what, away: false }) => {
                return Ok((and_also(end, &what), Vec::new()));
            }
            Err(Trouble::Passing { what, away }) => return Err(Trouble::Passing { what, away }),
            // Nothing is left, or the content belongs to another claim.
            Ok(()) | Err(Trouble::Taken { .. } | Trouble::Final(_)) => {}
        }
    }
    Ok((end, Vec::new()))
}

fn settle_success(
    job: &LiveJob,
    resumed: Result<Resumed<dyn OutputClaim>, String>,
    wall: Duration,
) -> Result<Settled, Trouble> {
    let id = job.id();
    let plan = &job.accepted.plan;
    let failed = |reason| {
        Ok((
            JobEnd::Failed {
                job: id,
                reason,
                failure: None,
            },
            Vec::new(),
        ))
    };
    let paths = JobPaths::new(
        &plan.output,
        id,
        job.accepted.claim.token,
        &plan.part_extension,
    );
    let manifest = Manifest::new(id, &plan.name, job.counters(), job.parts(), &paths);
    let remarks = match resumed {
        Ok(Resumed::Claimed(mut claim)) => match claim.commit(&manifest) {
            Ok(()) => claim.clean_up().err().map(|trouble| {
                let left = trouble.in_words(&plan.output);
                format!("the output of {id} is complete, but some temporary files remain: {left}")
            }),
            Err(Trouble::Passing { what, away }) => return Err(Trouble::Passing { what, away }),
            Err(trouble) => {
                // Keep the first error; it is the specific one.
                if let Trouble::Final(_) = trouble {
                    let _ = claim.discard();
                }
                return failed(trouble.in_words(&plan.output));
            }
        },
        Ok(Resumed::Settled) => None,
        Ok(Resumed::Gone) => {
            return failed(format!(
                "all files that it wrote to {} were removed",
                plan.output.display()
            ));
        }
        Err(why) => return failed(why),
    };
    let report = manifest.report(wall, &plan.output);
    Ok((JobEnd::Succeeded(report), remarks.into_iter().collect()))
}

/// Adds a second failure to the end of an unsuccessful job.
fn and_also(mut end: JobEnd, what: &str) -> JobEnd {
    if let JobEnd::Failed { reason, .. } | JobEnd::Killed { reason, .. } = &mut end {
        *reason = format!("{reason}; also: {what}");
    }
    end
}

/// Returns the end of a job whose retries are exhausted.
fn give_up(job: &LiveJob, why: &str, killed: Option<String>) -> JobEnd {
    let id = job.id();
    if let Some(end) = job
        .outcome
        .clone()
        .and_then(|outcome| job.end_without_report(outcome))
    {
        return and_also(end, why);
    }
    let left = if job.commit_begun {
        " and may be incomplete, without _SUCCESS"
    } else {
        ""
    };
    let uncommitted = format!("its output was not committed{left}: {why}");
    match killed.filter(|_| job.outcome.is_some()) {
        Some(reason) => JobEnd::Killed {
            job: id,
            reason: format!("{reason}; {uncommitted}"),
        },
        None => JobEnd::Failed {
            job: id,
            reason: uncommitted,
            failure: None,
        },
    }
}

impl Coordinator {
    /// Journals that the commit of a successful job begins.
    pub(super) fn begin_commit(&mut self, job: JobId) {
        let Some(known) = self.state.jobs().get(&job) else {
            return;
        };
        if known.commit_begun {
            reached(Situation::RecoveredCommitting);
        } else if known.outcome == Some(JobOutcome::Succeeded) {
            self.keep(Extra::CommitBegun { job });
        }
    }

    /// Commits or discards the output outside the loop; no process of the job exists any more.
    pub(super) fn start_ending(&mut self, job: JobId) {
        #[cfg(feature = "simulated")]
        note(&Fact::EffectReleased {
            what: "the end of a job",
        });
        self.endings.begin(job, now());
        match self.claims.take(job) {
            Some(Claim::Held(claim)) => self.try_to_end(job, Some(claim), None),
            // Continues when the claim has been checked or resumed.
            Some(coming @ (Claim::Checking | Claim::Coming { .. })) => {
                reached(Situation::EndingWaited);
                self.claims.set(job, coming);
            }
            Some(Claim::Away { .. }) | None => self.try_to_end(job, None, None),
        }
    }

    /// Makes one attempt to end a job; with `end` given, only the history is written.
    pub(super) fn try_to_end(
        &mut self,
        id: JobId,
        claim: Option<Box<dyn OutputClaim>>,
        end: Option<JobEnd>,
    ) {
        let Some(job) = self.state.jobs().get(&id).cloned() else {
            return;
        };
        let keep = self
            .cluster
            .as_ref()
            .map(|cluster| cluster.keeping(&self.state));
        let detail = self.detail(&job);
        let send_back = Arc::clone(&self.send_back);
        let disk = self.disk.clone();
        // The engine's time is monotonic: a change of the system clock does not affect the job's duration.
        let clock = self.clock;
        let epoch_micros = self.state.epoch_micros();
        let step = move || {
            let micros = clock
                .unix_micros(epoch_micros)
                .saturating_sub(job.submitted_micros);
            let wall = Duration::from_micros(micros);
            let ended_millis = job.submitted_micros.saturating_add(micros) / 1_000;
            let settled = match end {
                Some(end) => Ok((end, Vec::new())),
                None => settle(&job, claim, &disk, wall),
            };
            let tried = {
                // Release the history before replying so that a new coordinator can open it.
                let keep = keep;
                match settled {
                    Ok((end, mut remarks)) => {
                        let token = job.accepted.token;
                        let detail = ended_detail(detail, &end, ended_millis);
                        let mut ended = EndedJob {
                            token,
                            end,
                            detail,
                            cluster: None,
                            logs: job.logs.clone(),
                        };
                        let kept = keep.map_or(Ok(()), |keep| keep(&job, &mut ended, &mut remarks));
                        Tried::Over {
                            ended: Box::new(ended),
                            kept,
                            remarks,
                        }
                    }
                    Err(trouble) => {
                        let away = matches!(trouble, Trouble::Passing { away: true, .. });
                        Tried::Held {
                            why: trouble.in_words(&job.accepted.plan.output),
                            away,
                        }
                    }
                }
            };
            Input::Tried { job: id, tried }
        };
        // If the coordinator has stopped, the next one repeats this.
        run_outside(&self.world.tasks, send_back, step, move |error| {
            let tried = Tried::Held {
                why: format!("internal error: {error}"),
                away: false,
            };
            Input::Tried { job: id, tried }
        });
    }

    pub(super) fn on_tried(&mut self, job: JobId, tried: Tried) {
        let (why, away) = match tried {
            Tried::Over {
                ended,
                kept,
                remarks,
            } => return self.on_ended(job, *ended, kept, remarks),
            Tried::Held { why, away } => (why, away),
        };
        let (Some(ending), Some(known)) = (self.endings.get_mut(job), self.state.jobs().get(&job))
        else {
            return;
        };
        let patience = match (&known.outcome, known.accepted.claim_request().owner) {
            (Some(JobOutcome::Succeeded), Owner::Cluster) => None,
            (Some(JobOutcome::Succeeded), Owner::Program) => Some(COMMIT_PATIENCE),
            (_, Owner::Cluster) if away => Some(DISCARD_PATIENCE),
            _ => Some(Duration::ZERO),
        };
        match ending.fail(&why, patience, now()) {
            Failed::GiveUp(killed) => {
                let end = give_up(known, &why, killed);
                self.try_to_end(job, None, Some(end));
            }
            Failed::Retry { is_new: true } => self.log(&format!("{job} is held: {why}; retrying")),
            Failed::Retry { is_new: false } => {}
        }
    }

    /// Retries endings that are due.
    pub(super) fn look_after_endings(&mut self, now: Instant) {
        for job in self.endings.take_due(now) {
            self.try_to_end(job, None, None);
        }
    }

    /// Ends a job whose tasks are over and whose output cannot be settled; returns false if there is no such
    /// job. An ending in progress gives up when its current attempt fails.
    pub fn kill_ending(&mut self, job: JobId, reason: &str) -> bool {
        let (Some(ending), Some(known)) = (self.endings.get_mut(job), self.state.jobs().get(&job))
        else {
            return false;
        };
        reached(Situation::EndingKilled);
        if let Some(why) = ending.kill(reason) {
            let end = give_up(known, why, Some(reason.to_owned()));
            self.try_to_end(job, None, Some(end));
        }
        true
    }

    /// Returns why a job is held by an operator or its storage.
    pub(super) fn why_held(&self, job: JobId) -> Option<String> {
        let held = self
            .state
            .view()
            .job(job)
            .and_then(|job| job.pause().map(|pause| pause.reason.clone()));
        held.or_else(|| {
            self.endings
                .get(job)?
                .trouble(now())
                .map(|(why, ..)| why.to_owned())
        })
    }

    /// Returns why a job whose tasks are over has not ended.
    pub fn explain_ending(&self, job: JobId) -> Option<Vec<Reason>> {
        let ending = self.endings.get(job)?;
        let known = self.state.jobs().get(&job)?;
        let what = match known.outcome {
            Some(JobOutcome::Succeeded) => "its output is being committed",
            _ => "its files are being removed",
        };
        let text = format!("the tasks of {job} have ended; {what}");
        let mut reasons = vec![Reason::new(ReasonCode::State, text)];
        if let Some((why, tries, time)) = ending.trouble(now()) {
            let text = format!(
                "it is held and retried ({tries} times in {} s so far): {why}",
                time.as_secs()
            );
            reasons.push(Reason::new(ReasonCode::Ending, text));
            let remedy = format!("end it without its output with: nap job kill {job}");
            reasons.push(Reason::new(ReasonCode::Remedy, remedy));
        }
        Some(reasons)
    }

    fn on_ended(
        &mut self,
        job: JobId,
        ended: EndedJob,
        kept: Result<(), String>,
        remarks: Vec<String>,
    ) {
        if let Err(why) = &kept {
            let unrecorded = Some(why.clone());
            let summary = Box::new(JobSummary {
                unrecorded,
                ..ended.detail.summary.clone()
            });
            self.keep(Extra::Unrecorded { summary });
        }
        self.keep(Extra::Settled {
            job,
            outcome: ended.end.outcome(),
        });
        self.endings.remove(job);
        self.submitters.unpin(job);
        remarks
            .iter()
            .for_each(|remark| self.log(&format!("warning: {remark}")));
        if let Err(error) = kept {
            self.log(&format!("{job} is missing from the history: {error}"));
        }
        if self.cluster.is_some() {
            self.log(&format!("{job} {}", ended.detail.summary.phase.in_words()));
        }
        if let Some(followed) = self.followers.remove(job) {
            self.afterwards(move || followed.end(ended.detail.summary.progress, ended.end));
        }
    }
}

/// Returns the details of a job whose output is in place or removed.
fn ended_detail(mut detail: JobDetail, end: &JobEnd, ended_millis: u64) -> JobDetail {
    if let JobEnd::Succeeded(report) = end {
        detail.parts.clone_from(&report.parts);
    }
    let outcome = end.outcome();
    detail.summary.phase = JobPhase::ended(&outcome);
    detail.summary.reason = outcome.reason().map(str::to_owned);
    detail.summary.ended_millis = Some(ended_millis);
    detail
}
