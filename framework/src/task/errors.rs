//! How errors of the data plane and of the input become a task's error: whose fault, and what is to be run again.
//!
//! Owns that mapping only. Does not own what the engine does with it.

use std::io;
use std::path::Path;

use napreduce_data::{CollectError, ReduceError};
use napreduce_live::{ReduceTask, TaskError};

use super::saving::blamed;
use crate::input::InputError;
use crate::values::ValuesError;

/// Fatal when the disk is full: another try would fill it again. The task's own fault otherwise.
fn classed(error: &(dyn std::error::Error + 'static)) -> TaskError {
    match io_source(error).map(io::Error::kind) {
        Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
            TaskError::fatal(error.to_string())
        }
        _ => TaskError::task(error.to_string()),
    }
}

fn io_source<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e io::Error> {
    let mut next = Some(error);
    while let Some(current) = next {
        if let Some(found) = current.downcast_ref::<io::Error>() {
            return Some(found);
        }
        next = current.source();
    }
    None
}

/// A map's output could not be collected.
pub(crate) fn collect_error(error: CollectError) -> TaskError {
    classed(&error)
}

/// The same in a task that was started from a checkpoint, whose runs may be to blame.
pub(crate) fn collect_error_after(error: CollectError, restore: Option<&Path>) -> TaskError {
    if error.blames_checkpoint() { blamed(restore, error.to_string()) } else { classed(&error) }
}

/// A reduce's input could not be merged; when one segment is to blame, the map that wrote it runs again, and when a file
/// of the checkpoint is that the task was started from, the task does, from scratch.
pub(crate) fn reduce_error(error: ReduceError, task: &ReduceTask, restore: Option<&Path>) -> TaskError {
    if error.blames_checkpoint() {
        return blamed(restore, error.to_string());
    }
    let lost = error.lost_input().and_then(|index| task.inputs.get(index)).map(|(attempt, _)| *attempt);
    match lost {
        Some(attempt) => TaskError::lost_inputs(format!("output of {attempt}: {error}"), vec![attempt]),
        None => classed(&error),
    }
}

/// The values of a group could not be read to their end.
pub(crate) fn values_error(
    error: ValuesError,
    task: &ReduceTask,
    restore: Option<&Path>,
    group: u64,
) -> TaskError {
    match error {
        ValuesError::Input(error) => reduce_error(error, task, restore),
        ValuesError::Boundary(error) => error,
        ValuesError::Decode { what, error } => {
            TaskError::task(format!("{what} in group {group} of partition {}: {error}", task.partition))
        }
    }
}

impl From<InputError> for TaskError {
    fn from(error: InputError) -> TaskError {
        classed(&error)
    }
}
