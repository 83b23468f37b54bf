//! A live attempt as the engine knows it.
//!
//! Owns its state, its slot and its clock, which stands still while it is suspended. Attempts that ended are not kept.

use serde::{Deserialize, Serialize};

use crate::effect::Start;
use crate::ids::{AttemptId, WorkerId};
use crate::states::AttemptState;
use crate::time::{Span, Time};

/// One try at a task that has not ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    pub(crate) id: AttemptId,
    pub(crate) worker: WorkerId,
    pub(crate) from: Start,
    pub(crate) state: AttemptState,
    pub(crate) holds_slot: bool,
    pub(crate) wants_commit: bool,
    pub(crate) launched: Time,
    /// The number of the event with which it was launched.
    pub(crate) launched_at: u64,
    pub(crate) bytes_done: u64,
    pub(crate) bytes_total: u64,
    pub(crate) suspends: u32,
    /// Why its kill was ordered, if it was not by a request to preempt.
    pub(crate) kill_reason: Option<String>,
    active_before: Span,
    active_since: Option<Time>,
}

impl Attempt {
    pub(crate) fn new(id: AttemptId, worker: WorkerId, from: Start, now: Time, event: u64) -> Attempt {
        Attempt {
            id,
            worker,
            from,
            state: AttemptState::Launching,
            holds_slot: true,
            wants_commit: false,
            launched: now,
            launched_at: event,
            bytes_done: 0,
            bytes_total: 0,
            suspends: 0,
            kill_reason: None,
            active_before: Span::default(),
            active_since: None,
        }
    }

    /// Which attempt.
    pub fn id(&self) -> AttemptId {
        self.id
    }

    /// Where it runs, or is stopped.
    pub fn worker(&self) -> WorkerId {
        self.worker
    }

    /// Where its work started.
    pub fn from(&self) -> Start {
        self.from
    }

    /// Where it is.
    pub fn state(&self) -> AttemptState {
        self.state
    }

    /// Whether its process may be using a slot: true until it is gone or verified stopped.
    pub fn holds_slot(&self) -> bool {
        self.holds_slot
    }

    /// When it was ordered to start.
    pub fn launched(&self) -> Time {
        self.launched
    }

    /// Bytes of input consumed, as last reported.
    pub fn bytes_done(&self) -> u64 {
        self.bytes_done
    }

    /// Bytes of input in all, as last reported; zero while unknown.
    pub fn bytes_total(&self) -> u64 {
        self.bytes_total
    }

    /// How often it was suspended.
    pub fn suspends(&self) -> u32 {
        self.suspends
    }

    /// How long its process has been at work until `now`, without the time it was suspended.
    pub fn active_time(&self, now: Time) -> Span {
        self.active_before + self.active_since.map_or(Span::default(), |since| now.since(since))
    }

    pub(crate) fn start_clock(&mut self, now: Time) {
        self.active_since.get_or_insert(now);
    }

    pub(crate) fn stop_clock(&mut self, now: Time) {
        self.active_before = self.active_time(now);
        self.active_since = None;
    }
}
