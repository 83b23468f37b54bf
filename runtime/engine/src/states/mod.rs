//! The state machines of job, task, attempt and worker, each an explicit table of state x event, without
//! time, slots or effects. The engine drives them; a transition that is not in a table is an error with both
//! names in it, never a silent change.

mod attempt;
mod job;
mod task;
mod worker;

pub use attempt::{AttemptInput, AttemptOutcome, AttemptState};
pub use job::{JobInput, JobState, Standing};
pub use task::{TaskInput, TaskState};
pub use worker::{WorkerInput, WorkerState};

use std::fmt;

/// The table of a state machine has no row for an event in its state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{machine} is {state} and cannot take {input}")]
pub struct IllegalTransition {
    /// The name of the machine: `job`, `task`, `attempt` or `worker`.
    pub machine: &'static str,
    pub state: String,
    pub input: String,
}

impl IllegalTransition {
    fn new(
        machine: &'static str,
        state: impl fmt::Debug,
        input: impl fmt::Debug,
    ) -> IllegalTransition {
        IllegalTransition {
            machine,
            state: format!("{state:?}"),
            input: format!("{input:?}"),
        }
    }
}
