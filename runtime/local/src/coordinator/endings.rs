//! Jobs whose tasks are over and whose output is not settled.

use std::collections::BTreeMap;
use std::time::Duration;

use napreduce_engine::JobId;
use tokio::time::Instant;

use super::claims::BACKOFF;

/// The tries to settle the output of one job.
#[derive(Debug)]
pub(super) struct Ending {
    since: Instant,
    tries: u32,
    /// The error of the last try.
    why: Option<String>,
    /// Time of the next try; `None` during a try.
    at: Option<Instant>,
    /// The reason, if it was killed.
    killed: Option<String>,
}

/// The effect of a failed try.
pub(super) enum Failed {
    /// Retries are exhausted, or the job was killed for this reason.
    GiveUp(Option<String>),
    /// It is tried again; the error is new or the same as before.
    Retry { is_new: bool },
}

impl Ending {
    /// Returns the error of the last try, the number of tries, and the time since the first one.
    pub fn trouble(&self, now: Instant) -> Option<(&str, u32, Duration)> {
        Some((
            self.why.as_deref()?,
            self.tries,
            now.duration_since(self.since),
        ))
    }

    /// Handles a failed try; `patience` limits the time for retries.
    pub fn fail(&mut self, why: &str, patience: Option<Duration>, now: Instant) -> Failed {
        let is_over = patience.is_some_and(|patience| now.duration_since(self.since) >= patience);
        if is_over || self.killed.is_some() {
            return Failed::GiveUp(self.killed.take());
        }
        self.at = Some(now + BACKOFF.after(self.tries));
        self.tries += 1;
        let is_new = self.why.as_deref() != Some(why);
        if is_new {
            self.why = Some(why.to_owned());
        }
        Failed::Retry { is_new }
    }

    /// Kills the job: returns the error of the last try if the job can end now; else it ends when the current
    /// try fails.
    pub fn kill(&mut self, reason: &str) -> Option<&str> {
        match (self.at.take(), &self.why) {
            (Some(_), Some(why)) => Some(why),
            _ => {
                self.killed = Some(reason.to_owned());
                None
            }
        }
    }
}

/// The endings by job.
#[derive(Default)]
pub(super) struct Endings {
    by_job: BTreeMap<JobId, Ending>,
}

impl Endings {
    pub fn begin(&mut self, job: JobId, now: Instant) {
        self.by_job.insert(
            job,
            Ending {
                since: now,
                tries: 0,
                why: None,
                at: None,
                killed: None,
            },
        );
    }

    pub fn get(&self, job: JobId) -> Option<&Ending> {
        self.by_job.get(&job)
    }

    pub fn get_mut(&mut self, job: JobId) -> Option<&mut Ending> {
        self.by_job.get_mut(&job)
    }

    pub fn jobs(&self) -> Vec<JobId> {
        self.by_job.keys().copied().collect()
    }

    /// Returns the jobs that are to be tried again, and begins their tries.
    pub fn take_due(&mut self, now: Instant) -> Vec<JobId> {
        let due = |ending: &mut Ending| ending.at.take_if(|at| *at <= now).is_some();
        self.by_job
            .iter_mut()
            .filter_map(|(job, ending)| due(ending).then_some(*job))
            .collect()
    }

    pub fn remove(&mut self, job: JobId) {
        self.by_job.remove(&job);
    }
}
