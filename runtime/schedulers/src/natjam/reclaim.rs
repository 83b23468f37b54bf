//! The reclaim lists of Natjam and the timer of its preemptor. A request that is not served within the kill
//! timeout ends in a kill; it stays on the list as expired for a while, so that it is not repeated at once.
//! The engine carries out the kill when the grace period of the request ends.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use napreduce_engine::{JobId, Span, Time};

/// Timeouts of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReclaimLimits {
    /// Age at which a request ends in a kill.
    pub kill_timeout: Span,
    /// Time for which it counts after that.
    pub expired_time: Span,
    /// Interval of the preemptor.
    pub interval: Span,
}

impl ReclaimLimits {
    /// Returns the grace period of a request: the time until the first run at which it exceeds the kill
    /// timeout.
    pub fn grace(&self) -> Span {
        let interval = self.interval.0.max(1);
        Span(
            (self.kill_timeout.0 / interval)
                .saturating_add(1)
                .saturating_mul(interval),
        )
    }
}

/// A requested container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reclaimed {
    /// When it was requested, or expired.
    pub since: Time,
    /// The research job that loses it.
    pub from: JobId,
}

/// The result of aging a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Aged {
    /// Requests that end in a kill.
    pub killed: Vec<Reclaimed>,
    /// Expired requests that no longer count.
    pub dropped: Vec<Reclaimed>,
}

/// The reclaim list of one production job, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReclaimList {
    waiting: VecDeque<Reclaimed>,
    expired: VecDeque<Reclaimed>,
}

impl ReclaimList {
    /// Returns the number of requested containers, including expired requests.
    pub fn outstanding(&self) -> u32 {
        u32::try_from(self.waiting.len() + self.expired.len()).unwrap_or(u32::MAX)
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.expired.is_empty()
    }

    /// Returns the research jobs of pending requests, one entry per container.
    pub fn pending(&self) -> impl Iterator<Item = JobId> + '_ {
        self.waiting.iter().map(|entry| entry.from)
    }

    /// Adds a request for a container of a research job.
    pub fn append(&mut self, now: Time, from: JobId) {
        self.waiting.push_back(Reclaimed { since: now, from });
    }

    /// Removes the oldest request after the production job got a container.
    pub fn remove_oldest(&mut self) {
        if self.expired.pop_front().is_none() {
            self.waiting.pop_front();
        }
    }

    /// Expires requests that exceed the kill timeout, and drops expired ones.
    pub fn age(&mut self, now: Time, limits: &ReclaimLimits) -> Aged {
        let mut aged = Aged::default();
        while let Some(entry) = self
            .expired
            .front()
            .filter(|entry| now.since(entry.since) >= limits.expired_time)
        {
            aged.dropped.push(*entry);
            self.expired.pop_front();
        }
        while let Some(entry) = self
            .waiting
            .front()
            .filter(|entry| now.since(entry.since) > limits.kill_timeout)
        {
            aged.killed.push(*entry);
            self.expired.push_back(Reclaimed {
                since: now,
                from: entry.from,
            });
            self.waiting.pop_front();
        }
        aged
    }
}

/// Returns the number of containers to request in a run: pending minus outstanding, if no slot is free.
pub fn new_requests(full: bool, pending: u32, outstanding: u32) -> u32 {
    if full {
        pending.saturating_sub(outstanding)
    } else {
        0
    }
}

/// The timer of the preemptor: runs at whole multiples of its interval while there is work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Runs {
    interval: Span,
    /// Time of the next run; `None` without work.
    due: Option<Time>,
    last: Option<Time>,
}

impl Runs {
    pub(super) fn new(interval: Span) -> Runs {
        Runs {
            interval,
            due: None,
            last: None,
        }
    }

    /// Whether a run is due now; schedules the next one.
    pub(super) fn is_due(&mut self, now: Time, has_work: bool) -> bool {
        if !has_work {
            self.due = None;
            return false;
        }
        let interval = self.interval.0.max(1);
        let whole = now.0.is_multiple_of(interval);
        let next = Time(
            (now.0 / interval)
                .saturating_add(1)
                .saturating_mul(interval),
        );
        let due = self.due.unwrap_or(if whole && self.last != Some(now) {
            now
        } else {
            next
        });
        if now < due {
            self.due = Some(due);
            return false;
        }
        self.due = Some(next);
        self.last = Some(now);
        true
    }

    pub(super) fn next(&self) -> Option<Time> {
        self.due
    }
}
