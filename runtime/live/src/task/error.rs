//! Why a task could not go on.
//!
//! Owns whose fault it was and what it says. Does not own what follows from it (the engine).

use std::fmt;
use std::io;

use napreduce_core::{AttemptId, FailureClass};
use serde::{Deserialize, Serialize};

/// Why a task could not go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskError {
    /// Whose fault it was.
    pub class: FailureClass,
    /// What happened, to what, and what to do.
    pub message: String,
    /// Map attempts whose output could not be read; their tasks are run again.
    pub lost_inputs: Vec<AttemptId>,
}

impl TaskError {
    /// The task's own fault: counts towards its attempts.
    pub fn task(message: impl Into<String>) -> TaskError {
        TaskError { class: FailureClass::Task, message: message.into(), lost_inputs: Vec::new() }
    }

    /// Something outside the task: it is tried again.
    pub fn retryable(message: impl Into<String>) -> TaskError {
        TaskError { class: FailureClass::Retryable, message: message.into(), lost_inputs: Vec::new() }
    }

    /// No further try can help: the job fails now.
    pub fn fatal(message: impl Into<String>) -> TaskError {
        TaskError { class: FailureClass::Fatal, message: message.into(), lost_inputs: Vec::new() }
    }

    /// Map outputs could not be read: their tasks are run again, then this one.
    pub fn lost_inputs(message: impl Into<String>, lost_inputs: Vec<AttemptId>) -> TaskError {
        TaskError { class: FailureClass::Retryable, message: message.into(), lost_inputs }
    }

    /// `cannot {doing}: {error}`; fatal when the disk is full or the quota is used up, else the task's own fault.
    pub fn io(doing: impl fmt::Display, error: &io::Error) -> TaskError {
        TaskError::io_with(format!("cannot {doing}: {error}"), error)
    }

    /// The same in other words.
    pub(crate) fn io_with(message: String, error: &io::Error) -> TaskError {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => TaskError::fatal(message),
            _ => TaskError::task(message),
        }
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for TaskError {}
