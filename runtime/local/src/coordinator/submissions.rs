//! Submission of jobs: claims the output directory outside the loop. A submission sent twice is one job.

use std::sync::Arc;

use napreduce_engine::{Event, Job, JobId};
use napreduce_protocol::{ClaimToken, JobError, JobPlan};
use tokio::sync::oneshot;

use super::claims::Claim;
use super::entry::{Accepted, Extra};
use super::followers::Following;
use super::outside::run_outside;
use super::submitters::{Pins, Submitter};
use super::{Coordinator, Input};
use crate::output::{
    ClaimMark, ClaimRequest, OutputClaim, Protected, check_place, files_read, take_output,
};
use crate::user::current_user;
use crate::world::{Situation, reached};

impl Coordinator {
    /// Claims an output directory outside the loop.
    pub fn claim(&mut self, accepted: Accepted, submitter: Submitter) {
        self.submitters.add(accepted.token, submitter);
        let send_back = Arc::clone(&self.send_back);
        let disk = self.disk.clone();
        let protected = self.protected(&accepted.plan);
        let others = self.claims_of_jobs();
        let pinning = self.cluster.as_ref().map(|cluster| cluster.pinning());
        let accepted = Arc::new(accepted);
        let refused = Arc::clone(&accepted);
        let step = move || {
            let pins = pinning.map(|pin| pin(&accepted));
            let request = ClaimRequest {
                others: &others,
                ..accepted.claim_request()
            };
            let claim = check_place(&accepted.plan.output, &protected)
                .and_then(|()| take_output(&disk, &request));
            // Ignored if the coordinator has stopped; the claim is dropped, and its lock is released with the
            // process.
            Input::Claimed {
                accepted,
                pins,
                claim,
            }
        };
        run_outside(&self.world.tasks, send_back, step, |error| Input::Claimed {
            accepted: refused,
            pins: None,
            claim: Err(JobError::Internal(error)),
        });
    }

    /// Returns the claims of all jobs. After a restart, and while an output is unreachable, no process holds them.
    fn claims_of_jobs(&self) -> Vec<ClaimToken> {
        let jobs = self.state.jobs().values();
        jobs.map(|known| known.accepted.claim.token).collect()
    }

    /// Returns the directories and inputs that the output directory must not overlap.
    fn protected(&self, plan: &JobPlan) -> Protected {
        let mut directories = Vec::new();
        for link in self.state.links().values() {
            let directory = &link.identity().directory;
            // An embedded worker has none.
            if !directory.as_os_str().is_empty() {
                directories.push(directory.clone());
            }
        }
        if let Some(cluster) = &self.cluster {
            directories.push(cluster.directory());
        }
        Protected {
            cluster: directories,
            inputs: files_read(&plan.splits),
        }
    }

    pub(super) fn on_claimed(
        &mut self,
        mut accepted: Accepted,
        pins: Option<Pins>,
        claim: Result<Box<dyn OutputClaim>, JobError>,
    ) {
        let job = accepted.job;
        let token = accepted.token;
        let submitters = self.submitters.end(token);
        match claim {
            Ok(claim) => {
                accepted.claim = claim.mark();
                self.claims.set(job, Claim::Held(claim));
                if let Some(pins) = pins {
                    self.submitters.pin(job, pins);
                }
                self.submitted(accepted);
                self.welcome_submitters(job, submitters);
                self.hold_while_paused();
                if let Some(reason) = self.program.interrupted().map(str::to_owned) {
                    self.enter(Event::JobKillRequested { job, reason });
                }
            }
            Err(error) => {
                if let JobError::OutputInUse { .. } = error {
                    reached(Situation::ClaimRefused);
                }
                self.submitters.take_back(job);
                refuse_submitters(error, submitters);
            }
        }
    }

    pub(super) fn interrupt(&mut self, reason: String) {
        let live_jobs: Vec<JobId> = self.state.view().jobs().map(Job::id).collect();
        for job in live_jobs {
            self.enter(Event::JobKillRequested {
                job,
                reason: reason.clone(),
            });
        }
        for job in self.endings.jobs() {
            self.kill_ending(job, &reason);
        }
        self.program.interrupt(reason);
    }

    pub(super) fn submit_embedded(
        &mut self,
        plan: JobPlan,
        reply: oneshot::Sender<Result<(JobId, Following), JobError>>,
    ) {
        let job = self.next_job();
        // Unique: the time, the process and the job.
        let token = (u128::from(self.world.clock.unix_micros()) << 64)
            | (u128::from(self.world.process.id()) << 32)
            | u128::from(job.0);
        let accepted = Accepted {
            job,
            token,
            plan,
            user: current_user(),
            program: None,
            files: Vec::new(),
            claim: ClaimMark::default(),
            rerun_of: None,
        };
        self.claim(accepted, Submitter::Embedding(reply));
    }

    /// Notifies the submitters when the job is journaled.
    pub(super) fn welcome_submitters(&mut self, job: JobId, submitters: Vec<Submitter>) {
        for submitter in submitters {
            match submitter {
                Submitter::Client(answer) => self.afterwards(move || answer(Ok(job))),
                Submitter::Embedding(reply) => {
                    let following = self.follow(job);
                    self.afterwards(move || {
                        // It may have ended.
                        let _ = reply.send(Ok((job, following)));
                    });
                }
            }
        }
    }

    fn submitted(&mut self, accepted: Accepted) {
        self.decide();
        let spec = accepted.spec(self.entry_time());
        let event = Event::JobSubmitted {
            job: accepted.job,
            spec,
        };
        self.enter_with(Some(event), vec![Extra::Accepted(Box::new(accepted))]);
    }

    pub fn next_job(&mut self) -> JobId {
        self.submitters.next_job()
    }

    /// Returns whether the output directory of this submission is being claimed.
    pub fn is_claiming_for(&self, token: u128) -> bool {
        self.submitters.is_waiting(token)
    }

    /// Adds a submitter to a submission in progress.
    pub fn join_submission(&mut self, token: u128, submitter: Submitter) {
        self.submitters.add(token, submitter);
    }

    /// Returns whether the output directory of a submission is being claimed.
    pub fn is_claiming(&self) -> bool {
        self.submitters.are_waiting()
    }

    /// Keeps what a job needs in the store until it has ended.
    pub fn pin(&mut self, job: JobId, pins: Pins) {
        self.submitters.pin(job, pins);
    }
}

fn refuse_submitters(error: JobError, submitters: Vec<Submitter>) {
    for submitter in submitters {
        // A submitter that no longer waits is ignored.
        match submitter {
            Submitter::Client(answer) => answer(Err(&error)),
            Submitter::Embedding(reply) => {
                let _ = reply.send(Err(error));
                // It is the only submitter: an embedded job is submitted once.
                return;
            }
        }
    }
}
