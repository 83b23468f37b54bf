//! The claims that a coordinator has on the output directories of its jobs.
//!
//! Owns taking them up again after a restart, waiting for storage that is away, and the renewal of leases. Does not own the
//! claim itself (`output`) nor the end of a job (`ending`).

use std::time::{Duration, Instant};

use napreduce_core::JobId;

use super::daemon::{Coordinator, Input};
use super::entry::Happening;
use crate::output::{Lease, OutputClaim, Resumed, Trouble};

/// The first wait before something is tried again, and the longest.
const WAIT_FIRST: Duration = Duration::from_millis(250);
const WAIT_MAX: Duration = Duration::from_secs(15);
/// How often other hosts are told that a claim is alive; a quarter of the time after which they would take it.
const RENEWAL: Duration = Duration::from_secs(15);
/// How a job is said to be held because its storage is away, which tells it from one that an operator holds.
const OUT_OF_REACH: &str = "its output directory is out of reach: ";

/// The claim of a job whose tasks are not over.
#[derive(Debug)]
pub(super) enum Claim {
    Held(Box<OutputClaim>),
    /// It is being taken up beside the loop.
    Coming {
        tries: u32,
    },
    /// Its storage is away; it is tried again at that time.
    Away {
        at: Instant,
        tries: u32,
    },
}

/// How long to wait after so many tries.
pub(super) fn wait_after(tries: u32) -> Duration {
    WAIT_FIRST.saturating_mul(1 << tries.min(8)).min(WAIT_MAX)
}

impl Coordinator {
    /// Takes a claim up again that an earlier process had.
    pub(super) fn resume_claim(&mut self, job: JobId, tries: u32) {
        let Some(accepted) = self.brain.jobs.get(&job).map(|known| known.accepted.clone()) else { return };
        self.claims.insert(job, Claim::Coming { tries });
        let (own, disk) = (self.own.clone(), self.disk.clone());
        tokio::task::spawn_blocking(move || {
            let resumed = OutputClaim::resume(&disk, &accepted.claim_request(), accepted.claim);
            // A coordinator that has ended does it again when it is back.
            let _ = own.send(Input::Resumed { job, resumed });
        });
    }

    pub(super) fn on_resumed(&mut self, job: JobId, resumed: Result<Resumed, Trouble>) {
        let Some(Claim::Coming { tries }) = self.claims.remove(&job) else { return };
        if self.endings.contains_key(&job) {
            let claim = match resumed {
                Ok(Resumed::Claimed(claim)) => Some(claim),
                _ => None,
            };
            return self.try_to_end(job, claim, None);
        }
        let Some(known) = self.brain.jobs.get(&job) else { return };
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
        self.enter(Happening::JobKillRequested { job, reason });
    }

    /// Lets nothing of a job run while its storage is away: it would only fail.
    fn hold(&mut self, job: JobId, what: &str) {
        if self.brain.engine.can_suspend_job(job).is_ok() {
            self.say(&format!("{job} is held: {OUT_OF_REACH}{what}"));
            let reason = format!("{OUT_OF_REACH}{what}; it is tried again");
            self.enter(Happening::JobSuspendRequested { job, reason });
        }
    }

    /// Lets a job go on that was held by [`Coordinator::hold`].
    fn release(&mut self, job: JobId) {
        let view = self.brain.view();
        let held = view.job(job).and_then(|job| job.held()).is_some_and(|why| why.starts_with(OUT_OF_REACH));
        if held {
            self.say(&format!("{job} is not held any more: its output directory is back"));
            let reason = "its output directory is back".to_owned();
            self.enter(Happening::JobResumeRequested { job, reason });
        }
    }

    /// Tries again what is due, and renews leases.
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
                // What hinders it is met again, and said, by the next step of the job.
                leases.iter().for_each(|lease| drop(lease.renew()));
            });
        }
    }
}
