//! Why a worker's daemon is to end, and how long it has.
//!
//! Owns what a signal and the time limit mean. Does not own what follows (`link`), nor the second signal,
//! which ends the process where it stands.

use std::time::Duration;

use napreduce_task::{Interrupts, signal_name};
use tokio::time::{Instant, sleep_until};

use super::configuration::{LeaveRules, OnTerminate};

/// The daemon is to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StopRequest {
    /// Who wants that, for people.
    pub(super) why: String,
    /// How long what runs here has to save its work; without, it is given back at once.
    pub(super) grace: Option<Duration>,
}

/// Waits for whatever ends a daemon.
pub(super) struct Stop {
    interrupts: Interrupts,
    rules: LeaveRules,
    /// When it is to begin to leave because of its time limit.
    limit: Option<Instant>,
}

impl Stop {
    /// `began` is when the process was started, from which its time limit counts.
    pub(super) fn new(interrupts: Interrupts, rules: LeaveRules, began: Instant) -> Stop {
        Stop { interrupts, rules, limit: rules.leaves_after().map(|after| began + after) }
    }

    /// The next request. Dropped before it comes, nothing is lost.
    pub(super) async fn next(&mut self) -> StopRequest {
        let limit = self.limit;
        tokio::select! {
            signal = self.interrupts.arrival() => match signal {
                Ok(signal) => self.request_of(signal),
                Err(error) => StopRequest { why: format!("cannot wait for signals: {error}"), grace: None },
            },
            () = sleep_until(limit.unwrap_or_else(Instant::now)), if limit.is_some() => {
                self.limit = None;
                StopRequest { why: String::from("its time limit is near"), grace: Some(self.rules.grace) }
            }
        }
    }

    /// People at a terminal do not want to wait; whoever manages pods and allocations says when it will kill.
    fn request_of(&self, signal: i32) -> StopRequest {
        let why = signal_name(signal).unwrap_or("a signal").to_owned();
        let drains = why == "SIGTERM" && self.rules.on_terminate == OnTerminate::Drain;
        StopRequest { why, grace: drains.then_some(self.rules.grace) }
    }
}
