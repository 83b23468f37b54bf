//! When the preemptor runs: at whole multiples of its interval, while there is something to do.
//!
//! Owns the timer. Does not own what a run does.

use serde::{Deserialize, Serialize};

use napreduce_engine::{Span, Time};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Runs {
    interval: Span,
    /// When the next run is; there is nothing to do, without.
    due: Option<Time>,
    last: Option<Time>,
}

impl Runs {
    pub(super) fn new(interval: Span) -> Runs {
        Runs { interval, due: None, last: None }
    }

    /// Whether a run is to happen now; plans the next one.
    pub(super) fn is_due(&mut self, now: Time, has_work: bool) -> bool {
        if !has_work {
            self.due = None;
            return false;
        }
        let interval = self.interval.0.max(1);
        let whole = now.0.is_multiple_of(interval);
        let next = Time((now.0 / interval).saturating_add(1).saturating_mul(interval));
        let due = self.due.unwrap_or(if whole && self.last != Some(now) { now } else { next });
        if now < due {
            self.due = Some(due);
            return false;
        }
        (self.due, self.last) = (Some(next), Some(now));
        true
    }

    /// When to be called again.
    pub(super) fn next(&self) -> Option<Time> {
        self.due
    }
}
