//! Submission of jobs: claims the output directory outside the loop. A submission sent twice is one job.

use std::sync::Arc;

use napreduce_engine::{Event, JobId};
use napreduce_protocol::{JobError, JobPlan};
use tokio::sync::oneshot;

use super::entry::{Accepted, Extra};
use super::{Claim, Coordinator, Following, Input, Pins, Submitter};
use crate::clock::unix_micros;
use crate::output::{ClaimMark, OutputClaim, Surroundings, check_place, files_read};
use crate::user::current_user;

impl Coordinator {
    /// Claims an output directory outside the loop.
    pub fn claim(&mut self, accepted: Accepted, submitter: Submitter) {
        self.claiming.insert(accepted.token, (accepted.job, vec![submitter]));
        let (own, disk) = (Arc::clone(&self.own), self.disk.clone());
        let surroundings = self.surroundings(&accepted.plan);
        let pinning = self.cluster.as_ref().map(|cluster| cluster.pinning());
        tokio::task::spawn_blocking(move || {
            let pins = pinning.map(|pin| pin(&accepted));
            let claim = check_place(&accepted.plan.output, &surroundings)
                .and_then(|()| OutputClaim::take(&disk, &accepted.claim_request()));
            // A coordinator that has ended claims nothing; the lock goes with the process.
            own(Input::Claimed { accepted: Box::new(accepted), pins, claim });
        });
    }

    /// What an output directory must keep away from.
    fn surroundings(&self, plan: &JobPlan) -> Surroundings {
        let workers = self.state.links.values().map(|link| link.identity().directory.clone());
        let own = self.cluster.as_ref().map(|cluster| cluster.directory());
        let cluster = workers.filter(|directory| !directory.as_os_str().is_empty()).chain(own).collect();
        Surroundings { cluster, inputs: files_read(&plan.splits) }
    }

    pub(super) fn on_claimed(
        &mut self,
        mut accepted: Accepted,
        pins: Option<Pins>,
        claim: Result<OutputClaim, JobError>,
    ) {
        let (job, token) = (accepted.job, accepted.token);
        let submitters = self.claiming.remove(&token).map(|(_, submitters)| submitters).unwrap_or_default();
        match claim {
            Ok(claim) => {
                accepted.claim = claim.mark();
                self.claims.insert(job, Claim::Held(Box::new(claim)));
                self.pins.extend(pins.map(|pins| (job, pins)));
                self.submitted(accepted);
                self.welcome_submitters(job, submitters);
                self.hold_while_paused();
                if let Some(reason) = self.interrupted.clone() {
                    self.enter(Event::JobKillRequested { job, reason });
                }
            }
            Err(error) => refuse_submitters(error, submitters),
        }
    }

    pub(super) fn interrupt(&mut self, reason: String) {
        let live: Vec<JobId> = self.state.view().jobs().map(napreduce_engine::Job::id).collect();
        for job in live {
            self.enter(Event::JobKillRequested { job, reason: reason.clone() });
        }
        let ending: Vec<JobId> = self.endings.keys().copied().collect();
        for job in ending {
            self.kill_ending(job, &reason);
        }
        self.interrupted = Some(reason);
    }

    pub(super) fn submit_embedded(
        &mut self,
        plan: JobPlan,
        reply: oneshot::Sender<Result<(JobId, Following), JobError>>,
    ) {
        let job = self.next_job();
        let user = current_user();
        let (program, files, claim) = (None, Vec::new(), ClaimMark::default());
        // Unlike that of any other process.
        let token =
            (u128::from(unix_micros()) << 64) | (u128::from(std::process::id()) << 32) | u128::from(job.0);
        let accepted = Accepted { job, token, plan, user, program, files, claim, rerun_of: None };
        self.claim(accepted, Submitter::Embedding(reply));
    }

    /// Notifies the submitters when the job is journaled.
    pub(super) fn welcome_submitters(&mut self, job: JobId, submitters: Vec<Submitter>) {
        for submitter in submitters {
            match submitter {
                Submitter::Client(answer) => self.afterwards(move || answer(Ok(job))),
                Submitter::Embedding(reply) => {
                    let following = self.follow(job);
                    // An embedding program waits for the answer.
                    self.afterwards(move || drop(reply.send(Ok((job, following)))));
                }
            }
        }
    }

    fn submitted(&mut self, accepted: Accepted) {
        self.decide();
        let spec = accepted.spec(self.clock.now().max(self.state.last));
        let event = Event::JobSubmitted { job: accepted.job, spec };
        self.enter_with(Some(event), vec![Extra::Accepted(Box::new(accepted))]);
    }

    pub fn next_job(&mut self) -> JobId {
        self.last_job += 1;
        JobId(self.last_job)
    }
}

fn refuse_submitters(error: JobError, submitters: Vec<Submitter>) {
    for submitter in submitters {
        // Whoever is gone does not want to know.
        match submitter {
            Submitter::Client(answer) => answer(Err(&error)),
            // The only one: an embedded job is handed in once.
            Submitter::Embedding(reply) => return drop(reply.send(Err(error))),
        }
    }
}
