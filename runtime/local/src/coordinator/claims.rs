//! The claims on the output directories of jobs whose tasks are not over.

use std::collections::BTreeMap;
use std::time::Duration;

use napreduce_engine::JobId;
use napreduce_protocol::Backoff;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::output::{OutputClaim, RENEWAL};

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

/// The claims by job, and when their leases were renewed.
pub(super) struct Claims {
    by_job: BTreeMap<JobId, Claim>,
    renewed: Instant,
    /// Renewals that may hang because the storage does.
    renewing: BTreeMap<JobId, JoinHandle<()>>,
}

impl Claims {
    pub fn new(now: Instant) -> Claims {
        Claims {
            by_job: BTreeMap::new(),
            renewed: now,
            renewing: BTreeMap::new(),
        }
    }

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

    /// Returns whether it is time to renew all leases, once at each interval.
    pub fn begin_renewals(&mut self, now: Instant) -> bool {
        if now.duration_since(self.renewed) < RENEWAL {
            return false;
        }
        self.renewed = now;
        self.renewing.retain(|_, renewing| !renewing.is_finished());
        true
    }

    /// Returns whether the last renewal of a job's lease hangs.
    pub fn is_renewing(&self, job: JobId) -> bool {
        self.renewing.contains_key(&job)
    }

    pub fn set_renewing(&mut self, job: JobId, renewing: JoinHandle<()>) {
        self.renewing.insert(job, renewing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::now;

    /// Another run may take an output directory whose lease was not renewed.
    #[test]
    fn leases_are_renewed_at_each_interval() {
        let began = now();
        let mut claims = Claims::new(began);
        for interval in 1..4 {
            let due = began + RENEWAL * interval;
            let early = due - Duration::from_millis(1);
            assert!(!claims.begin_renewals(early), "{interval}");
            assert!(claims.begin_renewals(due), "{interval}");
            assert!(!claims.begin_renewals(due), "{interval}");
        }
    }
}
