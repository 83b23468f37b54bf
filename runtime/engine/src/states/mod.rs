//! The state machines of job, task, attempt and worker, each an explicit table of state x event.
//!
//! Owns which change follows from what, and nothing else: no time, no slots, no effects. The engine drives
//! them; a transition that is not in a table is an error with both names in it, never a silent change.

mod attempt;
mod job;
mod task;
mod worker;

pub use attempt::{AttemptInput, AttemptOutcome, AttemptState};
pub use job::{JobInput, JobState};
pub use task::{TaskInput, TaskState};
pub use worker::{WorkerInput, WorkerState};

use std::fmt;

/// A state machine was given an event that its state has no row for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{machine} is {state} and cannot take {input}")]
pub struct IllegalTransition {
    /// Which machine: `job`, `task`, `attempt` or `worker`.
    pub machine: &'static str,
    /// The name of the state it is in.
    pub state: String,
    /// The name of the event it was given.
    pub input: String,
}

impl IllegalTransition {
    fn new(machine: &'static str, state: impl fmt::Debug, input: impl fmt::Debug) -> IllegalTransition {
        IllegalTransition { machine, state: format!("{state:?}"), input: format!("{input:?}") }
    }
}
