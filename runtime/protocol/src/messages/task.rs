//! Messages between a worker and the task process of one attempt.
//!
//! Owns the vocabulary and its order: `Hello`, any number of `Progress`, at most one `CommitRequest` answered
//! by `CommitGranted`, then `Done`, `Failed` or `Checkpointed`; `Start` may be sent before `Hello` has come,
//! and `MoreInputs` any time after `Start`. A process that was started ahead says `Hello` when it waits, and
//! is told its `Outfit` before `Start`.
//!
//! ```text
//! worker                                   task
//!   Suspend{epoch} ->
//!                                         <- Ready{epoch}, at its gate      (or never: it is stopped after a grace)
//!   (process stopped, verified; later)
//!   Resume{epoch} -> (process continued)
//!                                         <- Resumed{epoch}
//!   Checkpoint ->
//!                                         <- Checkpointed{..}, and it ends  (or Done: no boundary was left)
//! ```

use std::path::PathBuf;

use napreduce_engine::{AttemptId, FaultPlace};
use serde::{Deserialize, Serialize};

use crate::counters::CounterValues;
use crate::description::{MapInput, PartOutput, TaskDescription};
use crate::task_error::TaskError;

/// Version of the messages; both ends are the same program, so a difference means that it was replaced under
/// a run.
pub const PROTOCOL_VERSION: u32 = 7;

/// What a worker says to a task process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToTask {
    Start(Box<TaskDescription>),
    /// Its part file may be promoted, now and by this attempt only.
    CommitGranted,
    /// More map outputs for a reduce that began before all of them were there, or that lost some. One of a
    /// map task that was named before replaces it.
    MoreInputs(Vec<MapInput>),
    /// The process is to be stopped as soon as it is at its gate. Epochs count the suspends of an attempt
    /// from 1.
    Suspend {
        epoch: u32,
        /// The task moves its memory out before it is ready: it is short, and the worker may not do it.
        page_out: bool,
    },
    /// The process runs again. Written before it does, so that a clock that is read after the stop takes it
    /// into account.
    Resume {
        epoch: u32,
        /// For how long it was stopped, in all its epochs.
        suspended_nanos: u64,
    },
    /// The work is to be saved at the next boundary, and the process to end.
    Checkpoint,
    /// What a process that was started ahead lacks to be that of an attempt; before anything else.
    Outfit(Outfit),
}

/// What a process finds when it is started for an attempt, for one that was started before. The files that
/// the attempt prints to come beside the message, as descriptors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outfit {
    pub variables: Vec<OutfitVariable>,
    /// Where it starts; `None` for where it is.
    #[serde(with = "crate::path_bytes::optional")]
    pub directory: Option<PathBuf>,
}

/// A variable of the environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutfitVariable {
    pub name: String,
    /// `None` takes it away.
    pub value: Option<Vec<u8>>,
}

/// What a task process says to its worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromTask {
    Hello {
        version: u32,
    },
    /// Bytes of input consumed, and in all (0 while unknown). Sent at least every second, with the same
    /// numbers if nothing has changed: a sign of life.
    Progress {
        bytes_done: u64,
        bytes_total: u64,
        /// Changes as long as a task that consumes nothing is well: it waits for inputs, fetches or merges
        /// them, or its code says so.
        signs: u64,
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
        /// `Peer` when they are known to be absent or damaged, `Path` when nobody answers.
        place: FaultPlace,
        reason: String,
    },
    /// The work is at the gate, the user's hook has run and memory is trimmed: the process may be stopped.
    Ready {
        epoch: u32,
    },
    /// The work goes on after a stop.
    Resumed {
        epoch: u32,
    },
    /// The work is saved.
    Checkpointed {
        /// Bytes of all files written for it.
        bytes: u64,
    },
    /// An attempt that began from a checkpoint has done the first new piece of work.
    Restored,
    /// The checkpoint cannot be used; the attempt began from scratch.
    RestoreRefused {
        reason: String,
    },
    /// Somebody sent this process SIGTSTP: it wants to be suspended, like any other attempt that is.
    StopSignalled,
}
