//! Reasons for a worker's daemon to stop: signals and the time limit. A second signal ends the process at
//! once.

use std::time::Duration;

use napreduce_local::clock::now;
use napreduce_local::process::Interrupts;
use napreduce_task::signal_name;
use tokio::time::{Instant, sleep_until};

use super::configuration::{LeaveRules, OnTerminate};

/// A request to stop the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StopRequest {
    /// The reason, for people.
    pub(super) why: String,
    /// Time for attempts to save their work; `None` to hand them back at once.
    pub(super) grace: Option<Duration>,
}

/// Waits for requests to stop.
pub(super) struct Stop {
    interrupts: Interrupts,
    rules: LeaveRules,
    /// When to begin to leave because of the time limit.
    limit: Option<Instant>,
}

impl Stop {
    /// Creates the queue of requests. The time limit counts from `began`, the start of the process.
    pub(super) fn new(interrupts: Interrupts, rules: LeaveRules, began: Instant) -> Stop {
        Stop {
            interrupts,
            rules,
            limit: rules.leaves_after().map(|after| began + after),
        }
    }

    /// Returns the next request. Cancel-safe.
    pub(super) async fn next(&mut self) -> StopRequest {
        let limit = self.limit;
        tokio::select! {
            signal = self.interrupts.arrival() => match signal {
                Ok(signal) => self.request_of(signal),
                Err(error) => StopRequest { why: format!("cannot wait for signals: {error}"), grace: None },
            },
            () = sleep_until(limit.unwrap_or_else(now)), if limit.is_some() => {
                self.limit = None;
                StopRequest { why: String::from("its time limit is near"), grace: Some(self.rules.grace) }
            }
        }
    }

    /// Returns the request for a signal. Only SIGTERM drains: it comes from managers of pods and allocations,
    /// which announce their kills. A user at a terminal does not want to wait.
    fn request_of(&self, signal: i32) -> StopRequest {
        let why = signal_name(signal).unwrap_or("a signal").to_owned();
        let drains = why == "SIGTERM" && self.rules.on_terminate == OnTerminate::Drain;
        let grace = if drains { Some(self.rules.grace) } else { None };
        StopRequest { why, grace }
    }
}
