//! A coordinator's claims on the output directories of its jobs: resuming them after a restart, waiting for
//! unreachable storage, and renewing leases.

use std::sync::Arc;
use std::sync::mpsc::{SendError, sync_channel};
use std::time::{Duration, Instant};

use napreduce_engine::{Event, FailureClass, FaultPlace, Job, JobId, Pause, PauseKind, Report};
use napreduce_protocol::WorkerReport;

use super::{Claim, Coordinator, Input};
use crate::output::{Lease, OutputClaim, Resumed, Trouble};

/// The first and the longest backoff.
const WAIT_FIRST: Duration = Duration::from_millis(250);
const WAIT_MAX: Duration = Duration::from_secs(15);
/// Time limit for checking a directory after a task failure; a slower one counts as unreachable.
const LOOK_MAX: Duration = Duration::from_millis(250);
/// Interval of lease renewals; a quarter of the expiry time.
const RENEWAL: Duration = Duration::from_secs(15);

/// Returns the backoff after so many tries.
pub(super) fn wait_after(tries: u32) -> Duration {
    WAIT_FIRST.saturating_mul(1 << tries.min(8)).min(WAIT_MAX)
}

impl Coordinator {
    /// Resumes a claim of an earlier process.
    pub fn resume_claim(&mut self, job: JobId, tries: u32) {
        let Some(accepted) = self.state.jobs.get(&job).map(|known| known.accepted.clone()) else { return };
        self.claims.insert(job, Claim::Coming { tries });
        let (own, disk) = (Arc::clone(&self.own), self.disk.clone());
        tokio::task::spawn_blocking(move || {
            let resumed = OutputClaim::resume(&disk, &accepted.claim_request(), accepted.claim);
            // If the coordinator has ended, it repeats this after its restart.
            own(Input::Resumed { job, resumed });
        });
    }

    pub(super) fn on_resumed(&mut self, job: JobId, resumed: Result<Resumed<OutputClaim>, Trouble>) {
        let Some(Claim::Coming { tries }) = self.claims.remove(&job) else { return };
        if self.endings.contains_key(&job) {
            let claim = match resumed {
                Ok(Resumed::Claimed(claim)) => Some(claim),
                _ => None,
            };
            return self.try_to_end(job, claim, None);
        }
        let Some(known) = self.state.jobs.get(&job) else { return };
        let output = known.accepted.plan.output.clone();
        let reason = match resumed {
            Ok(Resumed::Claimed(claim)) => {
                self.claims.insert(job, Claim::Held(claim));
                return self.release(job);
            }
            Err(Trouble::Passing { what, away }) => {
                let at = Instant::now() + wait_after(tries);
                self.claims.insert(job, Claim::Away { at, tries: tries + 1 });
                if away {
                    self.hold(job, &what);
                }
                return;
            }
            Ok(Resumed::Settled | Resumed::Gone) => {
                format!("what it wrote to {} was removed while no coordinator ran", output.display())
            }
            Err(trouble) => trouble.in_words(&output),
        };
        self.release(job);
        self.enter(Event::JobKillRequested { job, reason });
    }

    /// Checks the claimed directory after a task failure on shared storage: either the storage is unreachable
    /// and the job waits, or the failure counts. The check comes before the report is applied, so that
    /// nothing is retried or counted meanwhile.
    pub fn look_at_storage(&mut self, mut told: WorkerReport) -> WorkerReport {
        let WorkerReport::Happened {
            attempt,
            report: Report::Failed { class, place: FaultPlace::SharedStorage, reason, .. },
        } = &mut told
        else {
            return told;
        };
        let job = attempt.task.job;
        let Some(output) = self.state.jobs.get(&job).map(|known| known.accepted.plan.output.clone()) else {
            return told;
        };
        match self.verify_claim(job) {
            Ok(()) => {}
            Err(Trouble::Passing { what, .. }) => {
                self.hold(job, &what);
                *class = FailureClass::Excused;
            }
            Err(trouble) => {
                *class = FailureClass::Fatal;
                *reason = format!("{} ({reason})", trouble.in_words(&output));
            }
        }
        told
    }

    /// Checks a claimed directory with a short timeout; a directory that does not answer is unreachable.
    fn verify_claim(&mut self, job: JobId) -> Result<(), Trouble> {
        let claim = match self.claims.remove(&job) {
            Some(Claim::Held(claim)) if claim.is_soon_looked_at() => claim,
            Some(held @ Claim::Held(_)) => {
                self.claims.insert(job, held);
                return Ok(());
            }
            Some(waiting) => {
                self.claims.insert(job, waiting);
                return Err(Trouble::Passing { what: "it is being looked for".to_owned(), away: true });
            }
            None => return Ok(()),
        };
        // A rendezvous channel: the claim is handed over or returned, never lost.
        let (tell, told) = sync_channel(0);
        let own = Arc::clone(&self.own);
        tokio::task::spawn_blocking(move || {
            let verified = claim.verify();
            if let Err(SendError((claim, verified))) = tell.send((claim, verified)) {
                let resumed = verified.map(|()| Resumed::Claimed(claim));
                // If the coordinator has ended, it repeats this after its restart.
                own(Input::Resumed { job, resumed });
            }
        });
        let (claim, verified) = match told.recv_timeout(LOOK_MAX) {
            Ok((claim, verified @ Err(Trouble::Passing { .. }))) => {
                // It is resumed and locked again when the storage is back.
                drop(claim);
                (Claim::Away { at: Instant::now() + WAIT_FIRST, tries: 1 }, verified)
            }
            Ok((claim, verified)) => (Claim::Held(claim), verified),
            Err(_) => {
                let what = format!("it did not answer for {} ms", LOOK_MAX.as_millis());
                (Claim::Coming { tries: 0 }, Err(Trouble::Passing { what, away: true }))
            }
        };
        self.claims.insert(job, claim);
        verified
    }

    /// Holds a job while its storage is unreachable, since its tasks would fail.
    fn hold(&mut self, job: JobId, what: &str) {
        let kind = PauseKind::OutputUnreachable;
        if self.state.engine.can_pause_job(job, kind).is_ok() {
            let why = format!("its output directory is out of reach: {what}");
            self.say(&format!("{job} is held: {why}"));
            let pause = Pause { kind, reason: format!("{why}; it is tried again") };
            self.enter(Event::JobPauseRequested { job, pause });
        }
    }

    /// Releases a job held by [`Coordinator::hold`].
    fn release(&mut self, job: JobId) {
        let view = self.state.view();
        let pause = view.job(job).and_then(Job::pause);
        if pause.is_some_and(|pause| pause.kind == PauseKind::OutputUnreachable) {
            self.say(&format!("{job} is not held any more: its output directory is back"));
            let reason = "its output directory is back".to_owned();
            self.enter(Event::JobResumeRequested { job, reason });
        }
    }

    /// Retries due claims and renews leases.
    pub(super) fn look_after_claims(&mut self) {
        let now = Instant::now();
        let due = |(job, claim): (&JobId, &Claim)| match claim {
            Claim::Away { at, tries } if *at <= now => Some((*job, *tries)),
            _ => None,
        };
        let due: Vec<(JobId, u32)> = self.claims.iter().filter_map(due).collect();
        for (job, tries) in due {
            self.resume_claim(job, tries);
        }
        self.look_after_endings(now);
        if now.duration_since(self.renewed) >= RENEWAL {
            self.renewed = now;
            let leases: Vec<Lease> = self
                .claims
                .values()
                .filter_map(|claim| match claim {
                    Claim::Held(claim) => Some(Lease::of(claim)),
                    _ => None,
                })
                .collect();
            tokio::task::spawn_blocking(move || {
                leases.iter().for_each(Lease::renew);
            });
        }
    }
}
