//! Messages between a worker and the task process of one attempt.
//!
//! Owns the vocabulary and its order: `Hello`, any number of `Progress`, at most one `CommitRequest` answered by
//! `CommitGranted`, then `Done` or `Failed`; `Start` may be sent before `Hello` has come, and `MoreInputs` any time after
//! `Start`.

use napreduce_core::AttemptId;
use serde::{Deserialize, Serialize};

use super::description::TaskDescription;
use crate::body::PartOutput;
use crate::counters::CounterValues;
use crate::shuffle::MapInput;
use crate::task::TaskError;

/// Version of the messages; both ends are the same program, so a difference means that it was replaced under a run.
pub(crate) const PROTOCOL_VERSION: u32 = 1;

/// What a worker says to a task process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ToTask {
    Start(Box<TaskDescription>),
    /// Its part file may be promoted, now and by this attempt only.
    CommitGranted,
    /// More map outputs for a reduce that began before all of them were there, or that lost some. One of a map task
    /// that was named before replaces it.
    MoreInputs(Vec<MapInput>),
}

/// What a task process says to its worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FromTask {
    Hello {
        version: u32,
    },
    /// Bytes of input consumed, and in all (0 while unknown). Sent at least every second, with the same numbers if
    /// nothing has changed: a sign of life.
    Progress {
        bytes_done: u64,
        bytes_total: u64,
        /// Changes as long as a task that consumes nothing is well: it waits for inputs, or fetches them.
        waited: u64,
    },
    /// The part file is written and closed.
    CommitRequest {
        part: PartOutput,
    },
    Done {
        counters: CounterValues,
    },
    Failed(TaskError),
    /// The outputs of these map attempts cannot be read; the task goes on and waits for what replaces them.
    InputsLost {
        attempts: Vec<AttemptId>,
        reason: String,
    },
}
