//! The health of a worker: missing resources, and failures of attempts there.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::ids::TaskId;
use crate::time::{Span, Time};

/// How often the span of a shortage is doubled.
const DOUBLED_MAX: u32 = 6;

/// An assumed shortage after a failure that the host caused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shortage {
    pub until: Time,
    pub because: String,
}

/// Why a worker that is up receives no attempts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Health {
    /// The resource that the worker reported as missing.
    #[serde(default)]
    short: Option<String>,
    #[serde(default)]
    shortage: Option<Shortage>,
    /// Consecutive shortages without an attempt that succeeded in between.
    #[serde(default)]
    shortages: u32,
    excluded_until: Option<Time>,
    /// Counted failures since the last success, and their tasks.
    failures_in_row: u32,
    failed_tasks: BTreeSet<TaskId>,
}

impl Health {
    /// Returns whether the worker lacks nothing and is not excluded.
    pub fn is_good(&self) -> bool {
        self.short.is_none() && self.shortage.is_none() && self.excluded_until.is_none()
    }

    /// Returns the resource that the worker reported as missing.
    pub fn reported_shortage(&self) -> Option<&str> {
        self.short.as_deref()
    }

    /// Returns the assumed shortage.
    pub fn shortage(&self) -> Option<&Shortage> {
        self.shortage.as_ref()
    }

    /// Records a worker's report; returns false if it changes nothing.
    pub fn report_shortage(&mut self, lacks: Option<&str>) -> bool {
        let changes = self.short.as_deref() != lacks;
        if changes {
            self.short = lacks.map(str::to_owned);
        }
        changes
    }

    /// Assumes a shortage, longer each time, and returns its end; `None` if one is assumed already.
    pub fn assume_shortage(&mut self, now: Time, first: Span, because: &str) -> Option<Time> {
        if self.shortage.is_some() {
            return None;
        }
        let until = now + Span(first.0.max(1) << self.shortages);
        self.shortages = (self.shortages + 1).min(DOUBLED_MAX);
        self.shortage = Some(Shortage { until, because: because.to_owned() });
        Some(until)
    }

    /// Ends the assumed shortage; returns false if there is none.
    pub fn end_shortage(&mut self) -> bool {
        self.shortage.take().is_some()
    }

    pub fn excluded_until(&self) -> Option<Time> {
        self.excluded_until
    }

    pub fn exclude(&mut self, until: Time) {
        self.excluded_until = Some(until);
    }

    /// Ends the exclusion and returns when it would have ended.
    pub fn end_exclusion(&mut self) -> Option<Time> {
        self.excluded_until.take()
    }

    /// Counts a failure of a task.
    pub fn count_failure(&mut self, task: TaskId) {
        self.failures_in_row += 1;
        self.failed_tasks.insert(task);
    }

    /// Returns the number of failures since the last success, and of their tasks.
    pub fn failures(&self) -> (u32, usize) {
        (self.failures_in_row, self.failed_tasks.len())
    }

    /// Forgets the failures after a success.
    pub fn clear_failures(&mut self) {
        self.failures_in_row = 0;
        self.failed_tasks.clear();
        self.shortages = 0;
    }
}
