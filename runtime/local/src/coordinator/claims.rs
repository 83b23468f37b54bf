//! The claims on the output directories of jobs whose tasks are not over.

use std::collections::BTreeMap;
use std::time::Duration;

use napreduce_engine::JobId;
use napreduce_protocol::Backoff;
use tokio::time::Instant;

use crate::output::OutputClaim;

/// Pauses between tries to reach the storage of an output.
pub(super) const BACKOFF: Backoff =
    Backoff::new(Duration::from_millis(250), Duration::from_secs(15));

/// The claim of a job.
#[derive(Debug)]
pub(super) enum Claim {
    Held(Box<dyn OutputClaim>),
    /// Its directory is being checked outside the loop, after a task failed there.
    Checking,
    /// It is being resumed outside the loop.
    Coming {
        tries: u32,
    },
    /// Its storage is unreachable; the next try is at this time.
    Away {
        at: Instant,
        tries: u32,
    },
}

/// The claims by job.
#[derive(Default)]
pub(super) struct Claims {
    by_job: BTreeMap<JobId, Claim>,
}

impl Claims {
    pub fn set(&mut self, job: JobId, claim: Claim) {
        self.by_job.insert(job, claim);
    }

    /// Retries a claim after the backoff.
    pub fn retry(&mut self, job: JobId, now: Instant, tries: u32) {
        self.by_job.insert(
            job,
            Claim::Away {
                at: now + BACKOFF.after(tries),
                tries: tries + 1,
            },
        );
    }

    pub fn take(&mut self, job: JobId) -> Option<Claim> {
        self.by_job.remove(&job)
    }

    /// Returns the jobs whose claims are due for a retry, with their tries so far.
    pub fn due(&self, now: Instant) -> Vec<(JobId, u32)> {
        let due = |(job, claim): (&JobId, &Claim)| match claim {
            Claim::Away { at, tries } if *at <= now => Some((*job, *tries)),
            _ => None,
        };
        self.by_job.iter().filter_map(due).collect()
    }
}
