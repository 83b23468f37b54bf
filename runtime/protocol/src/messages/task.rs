//! Messages between a worker and the task process of one attempt. A task sends `Hello`, any number of
//! `Progress`, at most one `CommitRequest` answered by `CommitGranted`, then `Done`, `Failed` or
//! `Checkpointed`. `Start` may be sent before `Hello` has arrived, and `MoreInputs` any time after `Start`. A
//! prestarted process sends `Hello` when it is ready, and receives its `Outfit` before `Start`.
//!
//! ```text
//! worker                                   task
//!   Suspend{epoch} ->
//!                                         <- Ready{epoch}, at its gate      (else stopped after a grace)
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

/// Version of the messages. Both ends are the same program, so a difference means that the file was replaced
/// during a run.
pub const PROTOCOL_VERSION: u32 = 9;

/// A message to a task process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToTask {
    Start(Box<TaskDescription>),
    /// The exclusive permission to promote the part file.
    CommitGranted,
    /// More map outputs for a reduce that started early or lost some. A later output of a map task replaces
    /// an earlier one.
    MoreInputs(Vec<MapInput>),
    /// The process will be stopped once it reaches its gate. Epochs count an attempt's suspensions from 1.
    Suspend {
        epoch: u32,
        /// The task must write its memory to swap before it is ready: memory is short, and the worker lacks
        /// permission.
        page_out: bool,
    },
    /// The process is resumed. Sent before that, so that clocks read afterwards account for the stop.
    Resume {
        epoch: u32,
        /// Total time stopped, in all epochs.
        suspended_nanos: u64,
    },
    /// Save the work at the next boundary and exit.
    Checkpoint,
    /// Turns a prestarted process into that of an attempt; the first message.
    Outfit(Outfit),
}

/// The process state that a prestarted process lacks. Its log files are passed with the message as
/// descriptors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outfit {
    pub variables: Vec<OutfitVariable>,
    /// Its working directory; `None` to keep the current one.
    #[serde(with = "crate::path_bytes::optional")]
    pub directory: Option<PathBuf>,
}

/// An environment variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutfitVariable {
    pub name: String,
    /// `None` removes it.
    pub value: Option<Vec<u8>>,
}

/// A message from a task process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromTask {
    Hello {
        version: u32,
    },
    /// Bytes of input consumed and in total (0 while unknown). Sent at least every second as a heartbeat,
    /// even if unchanged.
    Progress {
        bytes_done: u64,
        bytes_total: u64,
        /// Changes while a task that consumes no input is alive: waiting for inputs, fetching, merging, or
        /// reporting progress from user code.
        signs: u64,
    },
    /// The part file is written and closed.
    CommitRequest {
        part: PartOutput,
    },
    Done {
        counters: CounterValues,
        /// The digest of the records that a map sealed for reduces.
        output_digest: Option<u64>,
    },
    Failed(TaskError),
    /// The outputs of these map attempts are unreadable; the task waits for replacements.
    InputsLost {
        attempts: Vec<AttemptId>,
        /// `Peer` if they are known to be missing or damaged, `Path` if the peer does not answer.
        place: FaultPlace,
        reason: String,
    },
    /// At the gate: the user's hook has run and memory is trimmed, so the process may be stopped.
    Ready {
        epoch: u32,
        /// It can save its work there without doing more of it.
        saves: bool,
    },
    /// The task continues after a stop.
    Resumed {
        epoch: u32,
    },
    /// The work is saved.
    Checkpointed {
        /// Size of all files written for it.
        bytes: u64,
    },
    /// An attempt restored from a checkpoint has made its first progress.
    Restored,
    /// The checkpoint is unusable; the attempt started from scratch.
    RestoreRefused {
        reason: String,
    },
    /// The process received SIGTSTP and asks to be suspended.
    StopSignalled,
}
