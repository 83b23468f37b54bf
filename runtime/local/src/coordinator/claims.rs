//! The claims on the output directories of jobs whose tasks are not over.

use std::collections::BTreeMap;
use std::time::Duration;

use napreduce_engine::JobId;
use napreduce_protocol::Backoff;
use tokio::time::Instant;

use crate::output::{OutputClaim, Renewal};

/// Pauses between tries to reach the storage of an output.
pub(super) const BACKOFF: Backoff =
    Backoff::new(Duration::from_millis(250), Duration::from_secs(15));
/// Interval of lease renewals; a quarter of the expiry time.
const RENEWAL: Duration = Duration::from_secs(15);

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
}

impl Claims {
    pub fn new(now: Instant) -> Claims {
        Claims {
            by_job: BTreeMap::new(),
            renewed: now,
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

    /// Returns the renewals of all leases, if it is time.
    pub fn renewals_due(&mut self, now: Instant) -> Option<Vec<Renewal>> {
        if now.duration_since(self.renewed) < RENEWAL {
            return None;
        }
        self.renewed = now;
        let held = self.by_job.values().filter_map(|claim| match claim {
            Claim::Held(claim) => Some(claim.renewal()),
            _ => None,
        });
        Some(held.collect())
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
            assert!(claims.renewals_due(early).is_none(), "{interval}");
            assert!(claims.renewals_due(due).is_some(), "{interval}");
            assert!(claims.renewals_due(due).is_none(), "{interval}");
        }
    }
}
