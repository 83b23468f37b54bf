//! A coordinator's claims on the output directories of its jobs: resuming them after a restart, waiting for
//! unreachable storage, and renewing leases.

use std::sync::Arc;
use std::sync::mpsc::{SendError, sync_channel};
use std::time::Duration;

use napreduce_engine::{Event, FailureClass, FaultPlace, Job, JobId, Pause, PauseKind};
use napreduce_protocol::WorkerReport;

use super::claims::Claim;
use super::{Coordinator, Input};
use crate::clock::now;
use crate::output::{OutputClaim, Resumed, Trouble, resume_output};

/// Time limit for checking a directory after a task failure; a slower one counts as unreachable.
const LOOK_MAX: Duration = Duration::from_millis(250);

impl Coordinator {
    /// Resumes a claim of an earlier process.
    pub fn resume_claim(&mut self, job: JobId, tries: u32) {
        let Some(accepted) = self
            .state
            .jobs()
            .get(&job)
            .map(|known| known.accepted.clone())
        else {
            return;
        };
        self.claims.set(job, Claim::Coming { tries });
        let own = Arc::clone(&self.own);
        let disk = self.disk.clone();
        self.world.tasks.blocking(move || {
            let resumed = resume_output(&disk, &accepted.claim_request(), accepted.claim);
            // If the coordinator has stopped, the next one repeats this.
            own(Input::Resumed { job, resumed });
        });
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

    /// Checks the claimed directory after a task failure on shared storage: either the storage is unreachable
    /// and the job waits, or the failure counts. The check comes before the report is applied, so that
    /// nothing is retried or counted meanwhile.
    pub fn look_at_storage(&mut self, mut message: WorkerReport) -> WorkerReport {
        let WorkerReport::Failed { attempt, error } = &mut message else {
            return message;
        };
        if error.place != FaultPlace::SharedStorage {
            return message;
        }
        let job = attempt.task.job;
        let Some(output) = self
            .state
            .jobs()
            .get(&job)
            .map(|known| known.accepted.plan.output.clone())
        else {
            return message;
        };
        match self.verify_claim(job) {
            Ok(()) => {}
            Err(Trouble::Passing { what, .. }) => {
                self.hold(job, &what);
                error.class = FailureClass::Excused;
            }
            Err(trouble) => {
                error.class = FailureClass::Fatal;
                error.message = format!("{} ({})", trouble.in_words(&output), error.message);
            }
        }
        message
    }

    /// Checks a claimed directory with a short timeout; a directory that does not answer is unreachable.
    fn verify_claim(&mut self, job: JobId) -> Result<(), Trouble> {
        let claim = match self.claims.take(job) {
            Some(Claim::Held(claim)) if claim.is_quick_to_check() => claim,
            Some(held @ Claim::Held(_)) => {
                self.claims.set(job, held);
                return Ok(());
            }
            Some(waiting) => {
                self.claims.set(job, waiting);
                return Err(Trouble::Passing {
                    what: "waiting for an earlier check".to_owned(),
                    away: true,
                });
            }
            None => return Ok(()),
        };
        // A rendezvous channel: the claim is handed over or returned, never lost.
        let (sender, receiver) = sync_channel(0);
        let own = Arc::clone(&self.own);
        self.world.tasks.blocking(move || {
            let verified = claim.verify();
            if let Err(SendError((claim, verified))) = sender.send((claim, verified)) {
                let resumed = verified.map(|()| Resumed::Claimed(claim));
                // If the coordinator has stopped, the next one repeats this.
                own(Input::Resumed { job, resumed });
            }
        });
        match receiver.recv_timeout(LOOK_MAX) {
            Ok((claim, verified @ Err(Trouble::Passing { .. }))) => {
                // It is resumed and locked again when the storage is back.
                drop(claim);
                self.claims.retry(job, now(), 0);
                verified
            }
            Ok((claim, verified)) => {
                self.claims.set(job, Claim::Held(claim));
                verified
            }
            Err(_) => {
                self.claims.set(job, Claim::Coming { tries: 0 });
                let what = format!("no response within {} ms", LOOK_MAX.as_millis());
                Err(Trouble::Passing { what, away: true })
            }
        }
    }

    /// Holds a job while its storage is unreachable, since its tasks would fail.
    fn hold(&mut self, job: JobId, what: &str) {
        let kind = PauseKind::OutputUnreachable;
        if self.state.engine().can_pause_job(job, kind).is_ok() {
            let why = format!("its output directory is unreachable: {what}");
            self.log(&format!("{job} is held: {why}"));
            let pause = Pause {
                kind,
                reason: format!("{why}; retrying"),
            };
            self.enter(Event::JobPauseRequested { job, pause });
        }
    }

    /// Releases a job held by [`Coordinator::hold`].
    fn release(&mut self, job: JobId) {
        let view = self.state.view();
        let pause = view.job(job).and_then(Job::pause);
        if pause.is_some_and(|pause| pause.kind == PauseKind::OutputUnreachable) {
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
        if let Some(renewals) = self.claims.renewals_due(now) {
            self.world.tasks.blocking(move || {
                // The next step of a job meets the same error and reports it.
                renewals.iter().for_each(|renew| drop(renew()));
            });
        }
    }
}
