//! What a production job has asked for and not got yet.
//!
//! Owns the reclaim list with its two limits: a request that is not honoured for too long ends in a kill, and
//! is kept as expired a little longer, so that it is not asked for again at once. Does not own the requests
//! themselves: the engine ends one in a kill when the grace that goes with it is over.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use napreduce_engine::{JobId, Span, Time};

/// How long requests are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReclaimLimits {
    /// A request older than this ends in a kill.
    pub kill_timeout: Span,
    /// How long it counts after that.
    pub expired_time: Span,
    /// How often the lists are looked at.
    pub interval: Span,
}

impl ReclaimLimits {
    /// How long after a request the first run comes at which it is older than the kill timeout: its grace.
    pub fn grace(&self) -> Span {
        let interval = self.interval.0.max(1);
        Span((self.kill_timeout.0 / interval).saturating_add(1).saturating_mul(interval))
    }
}

/// A container that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reclaimed {
    /// Since when it is on its list.
    pub since: Time,
    /// The research job that was asked.
    pub from: JobId,
}

/// What happened to a list in a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Aged {
    /// Requests that end in a kill now.
    pub killed: Vec<Reclaimed>,
    /// Expired ones that no longer count.
    pub dropped: Vec<Reclaimed>,
}

/// The reclaim list of one production job, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReclaimList {
    waiting: VecDeque<Reclaimed>,
    expired: VecDeque<Reclaimed>,
}

impl ReclaimList {
    /// How many containers are on their way, expired ones included.
    pub fn outstanding(&self) -> u32 {
        u32::try_from(self.waiting.len() + self.expired.len()).unwrap_or(u32::MAX)
    }

    /// Whether nothing is on its way.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.expired.is_empty()
    }

    /// Which research jobs were asked and have not lost their container to this job yet, once for each
    /// container.
    pub fn asked(&self) -> impl Iterator<Item = JobId> + '_ {
        self.waiting.iter().map(|entry| entry.from)
    }

    /// A research job was asked for a container.
    pub fn append(&mut self, now: Time, from: JobId) {
        self.waiting.push_back(Reclaimed { since: now, from });
    }

    /// The production job got a container: the oldest request is served.
    pub fn served(&mut self) {
        if self.expired.pop_front().is_none() {
            self.waiting.pop_front();
        }
    }

    /// Moves what is too old on: first to a kill, then out.
    pub fn age(&mut self, now: Time, limits: &ReclaimLimits) -> Aged {
        let mut aged = Aged::default();
        while let Some(entry) =
            self.expired.front().filter(|entry| now.since(entry.since) >= limits.expired_time)
        {
            aged.dropped.push(*entry);
            self.expired.pop_front();
        }
        while let Some(entry) =
            self.waiting.front().filter(|entry| now.since(entry.since) > limits.kill_timeout)
        {
            aged.killed.push(*entry);
            self.expired.push_back(Reclaimed { since: now, from: entry.from });
            self.waiting.pop_front();
        }
        aged
    }
}

/// How many containers a production job asks for in a run: what it waits for and has not asked for, when all
/// is full.
pub fn new_requests(full: bool, pending: u32, outstanding: u32) -> u32 {
    if full { pending.saturating_sub(outstanding) } else { 0 }
}
