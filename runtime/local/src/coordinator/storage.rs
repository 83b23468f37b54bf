//! A coordinator's claims on the output directories of its jobs: resuming them after a restart, waiting for
//! unreachable storage, and renewing leases.

use std::sync::Arc;
use std::time::Duration;

use napreduce_engine::{Event, FailureClass, FaultPlace, Job, JobId, Pause, PauseKind};
use napreduce_protocol::WorkerReport;
use tokio::time::{Instant, timeout};

use super::claims::Claim;
use super::outside::run_outside;
use super::{Check, Coordinator, Input};
use crate::clock::now;
use crate::output::{OutputClaim, Resumed, Trouble, renew_lease, resume_output};

/// Time limit for checking a directory after a task failure; a slower one counts as unreachable.
const CHECK_MAX: Duration = Duration::from_millis(250);

impl Coordinator {
    /// Resumes a claim of an earlier process.
    pub fn resume_claim(&mut self, job: JobId, tries: u32) {
        let Some(known) = self.state.jobs().get(&job) else {
            return;
        };
        let accepted = known.accepted.clone();
        self.claims.set(job, Claim::Coming { tries });
        let send_back = Arc::clone(&self.send_back);
        let disk = self.disk.clone();
        // If the coordinator has stopped, the next one repeats this.
        run_outside(
            &self.world.tasks,
            send_back,
            move || Input::Resumed {
                job,
                resumed: resume_output(&disk, &accepted.claim_request(), accepted.claim),
            },
            move |error| Input::Resumed {
                job,
                resumed: Err(Trouble::Passing {
                    what: format!("internal error: {error}"),
                    away: true,
                }),
            },
        );
    }

    pub(super) fn on_resumed(
        &mut self,
        job: JobId,
        resumed: Result<Resumed<dyn OutputClaim>, Trouble>,
    ) {
        let Some(Claim::Coming { tries }) = self.claims.take(job) else {
            return;
        };
        if self.endings.get(job).is_some() {
            let claim = match resumed {
                Ok(Resumed::Claimed(claim)) => Some(claim),
                _ => None,
            };
            return self.try_to_end(job, claim, None);
        }
        let Some(known) = self.state.jobs().get(&job) else {
            return;
        };
        let output = known.accepted.plan.output.clone();
        let reason = match resumed {
            Ok(Resumed::Claimed(claim)) => {
                self.claims.set(job, Claim::Held(claim));
                return self.release(job);
            }
            Err(Trouble::Passing { what, away }) => {
                self.claims.retry(job, now(), tries);
                if away {
                    self.hold(job, &what);
                }
                return;
            }
            Ok(Resumed::Settled | Resumed::Gone) => {
                format!(
                    "its files in {} were removed while no coordinator ran",
                    output.display()
                )
            }
            Err(trouble) => trouble.in_words(&output),
        };
        self.release(job);
        self.enter(Event::JobKillRequested { job, reason });
    }

    /// Begins to check the claimed directory after a task failure on shared storage: either the storage is
    /// unreachable and the job waits, or the failure counts. Returns the job if the report must wait for the check,
    /// so that nothing is retried or counted meanwhile.
    pub(super) fn check_storage(&mut self, report: &mut WorkerReport) -> Option<JobId> {
        let WorkerReport::Failed { attempt, error } = report else {
            return None;
        };
        if error.place != FaultPlace::SharedStorage {
            return None;
        }
        let job = attempt.task.job;
        if !self.state.jobs().contains_key(&job) {
            return None;
        }
        match self.claims.take(job)? {
            Claim::Held(claim) if claim.is_quick_to_check() => {
                self.claims.set(job, Claim::Checking);
                self.verify_claim(job, claim);
                Some(job)
            }
            Claim::Checking => {
                self.claims.set(job, Claim::Checking);
                Some(job)
            }
            held @ Claim::Held(_) => {
                self.claims.set(job, held);
                None
            }
            waiting @ (Claim::Coming { .. } | Claim::Away { .. }) => {
                self.claims.set(job, waiting);
                self.hold(job, "waiting for an earlier check");
                error.class = FailureClass::Excused;
                None
            }
        }
    }

    /// Checks a claimed directory outside the loop. One that does not answer in time is unreachable; its claim is
    /// resumed when it answers.
    fn verify_claim(&self, job: JobId, claim: Box<dyn OutputClaim>) {
        let mut verifying = self.world.tasks.blocking(move || match claim.verify() {
            Ok(()) => Check::Done(claim),
            Err(trouble) => Check::Failed {
                claim: Some(claim),
                trouble,
            },
        });
        let send_back = Arc::clone(&self.send_back);
        self.world.tasks.spawn(async move {
            // If the coordinator has stopped, the next one resumes the claim.
            if let Ok(checked) = timeout(CHECK_MAX, &mut verifying).await {
                let check = checked.unwrap_or_else(Check::panicked);
                return send_back(Input::Verified { job, check });
            }
            send_back(Input::Verified {
                job,
                check: Check::Late,
            });
            let resumed = match verifying.await.unwrap_or_else(Check::panicked) {
                Check::Done(claim) => Ok(Resumed::Claimed(claim)),
                Check::Failed { trouble, .. } => Err(trouble),
                Check::Late => return,
            };
            send_back(Input::Resumed { job, resumed });
        });
    }

    pub(super) fn on_verified(&mut self, job: JobId, check: Check) {
        self.claims.take(job);
        let trouble = match check {
            Check::Done(claim) => {
                self.continue_with_claim(job, Some(claim));
                None
            }
            Check::Failed { claim, trouble } => {
                // When the storage comes back, the claim is resumed and locked again.
                let is_passing = matches!(trouble, Trouble::Passing { .. });
                let claim = if is_passing { None } else { claim };
                self.continue_with_claim(job, claim);
                Some(trouble)
            }
            Check::Late => {
                self.claims.set(job, Claim::Coming { tries: 0 });
                let what = format!("no response within {} ms", CHECK_MAX.as_millis());
                Some(Trouble::Passing { what, away: true })
            }
        };
        if let Some(Trouble::Passing { what, .. }) = &trouble {
            self.hold(job, what);
        }
        self.release_reports(job, trouble.as_ref());
    }

    /// Ends a job whose tasks are over; otherwise keeps its claim, or retries to resume a lost one.
    fn continue_with_claim(&mut self, job: JobId, claim: Option<Box<dyn OutputClaim>>) {
        if self.endings.get(job).is_some() {
            return self.try_to_end(job, claim, None);
        }
        match claim {
            Some(claim) => self.claims.set(job, Claim::Held(claim)),
            None => self.claims.retry(job, now(), 0),
        }
    }

    /// Holds a job while its storage is unreachable, since its tasks would fail.
    fn hold(&mut self, job: JobId, what: &str) {
        let kind = PauseKind::OutputUnreachable;
        if self.state.engine().can_pause_job(job, kind).is_err() {
            return;
        }
        let why = format!("its output directory is unreachable: {what}");
        self.log(&format!("{job} is held: {why}"));
        let pause = Pause {
            kind,
            reason: format!("{why}; retrying"),
        };
        self.enter(Event::JobPauseRequested { job, pause });
    }

    /// Releases a job held by [`Coordinator::hold`].
    fn release(&mut self, job: JobId) {
        let view = self.state.view();
        if let Some(pause) = view.job(job).and_then(Job::pause)
            && pause.kind == PauseKind::OutputUnreachable
        {
            self.log(&format!(
                "{job} is released: its output directory is reachable again"
            ));
            let reason = "its output directory is reachable again".to_owned();
            self.enter(Event::JobResumeRequested { job, reason });
        }
    }

    /// Retries due claims and renews leases.
    pub(super) fn look_after_claims(&mut self) {
        let now = now();
        for (job, tries) in self.claims.due(now) {
            self.resume_claim(job, tries);
        }
        self.look_after_endings(now);
        self.renew_leases(now);
    }

    /// Renews the leases of all jobs. This includes jobs whose output is being committed or removed, which can take
    /// longer than a lease lasts. The storage of one job may hang, so each lease is renewed on a thread of its own.
    fn renew_leases(&mut self, now: Instant) {
        let jobs = self.state.jobs();
        self.renewals.begin_round_if_due(now, jobs.keys().copied());
        for job in self.renewals.take_next() {
            let Some(known) = jobs.get(&job) else {
                continue;
            };
            let disk = self.disk.clone();
            let output = known.accepted.plan.output.clone();
            let token = known.accepted.claim.token;
            let renewing = self.world.tasks.blocking(move || {
                // The next step of the job meets the same error and reports it.
                let _ = renew_lease(&disk, &output, token);
            });
            self.renewals.started(job, renewing);
        }
    }
}
