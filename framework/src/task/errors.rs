//! Conversion of data plane and input errors to task errors: what is at fault, and what must run again.

use std::io;
use std::path::Path;

use napreduce_data::{CollectError, ReduceError, SegmentError};
use napreduce_engine::FaultPlace;
use napreduce_protocol::{ReduceTask, TaskError, is_gone};

use super::saving::blamed;
use crate::codec::DecodeError;
use crate::input::InputError;
use crate::values::ValuesError;

/// Converts an error of the data plane if all files are on the worker's own disk.
fn classed(error: &(dyn std::error::Error + 'static)) -> TaskError {
    match io_source(error) {
        Some(cause) => TaskError::local(error.to_string(), cause),
        None => TaskError::task(error.to_string()),
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

/// Converts damage in a run that this attempt wrote; its disk is at fault.
fn own_run(error: &SegmentError, message: String) -> TaskError {
    match error {
        SegmentError::Open { source, .. } => TaskError::local(message, source),
        _ => TaskError::retryable(message).at(FaultPlace::LocalDisk),
    }
}

/// Converts an error while collecting a map's output.
pub(crate) fn collect_error(error: CollectError) -> TaskError {
    let message = error.to_string();
    match &error {
        CollectError::Segment(cause) => own_run(cause, message),
        CollectError::SpillThread(cause) => TaskError::local(message, cause),
        // The same on every retry; mostly too little memory for the collector.
        CollectError::Settings(_) => TaskError::fatal(message).at(FaultPlace::TaskMemory),
        _ => classed(&error),
    }
}

/// The same for a task restored from a checkpoint, whose runs may be at fault.
pub(crate) fn collect_error_after(error: CollectError, restore: Option<&Path>) -> TaskError {
    if error.blames_checkpoint() {
        blamed(restore, error.to_string())
    } else {
        collect_error(error)
    }
}

/// Converts an error while merging a reduce's input. If one segment is at fault, its map runs again; if a
/// checkpoint file is, the task restarts from scratch.
pub(crate) fn reduce_error(
    error: ReduceError,
    task: &ReduceTask,
    restore: Option<&Path>,
) -> TaskError {
    if error.blames_checkpoint() {
        return blamed(restore, error.to_string());
    }
    let message = error.to_string();
    match &error {
        // A missing or damaged segment is the map's fault; failing to open or map a file is this host's.
        ReduceError::Input {
            error: SegmentError::Open { source, .. },
            ..
        } if !is_gone(source) => {
            return TaskError::local(message, source);
        }
        ReduceError::Intermediate(cause) => return own_run(cause, message),
        ReduceError::Settings(_) => return TaskError::fatal(message).at(FaultPlace::TaskMemory),
        _ => {}
    }
    let lost = error
        .lost_input()
        .and_then(|index| task.inputs.get(index))
        .map(|(attempt, _)| *attempt);
    match lost {
        Some(attempt) => {
            TaskError::lost_inputs(format!("output of {attempt}: {error}"), vec![attempt])
        }
        None => classed(&error),
    }
}

/// Converts an error while reading the values of a group.
pub(crate) fn values_error(
    error: ValuesError,
    task: &ReduceTask,
    restore: Option<&Path>,
    group: u64,
) -> TaskError {
    match error {
        ValuesError::Input(error) => reduce_error(error, task, restore),
        ValuesError::Boundary(error) => error,
        ValuesError::Decode { what, error } => TaskError::task(format!(
            "{what} in group {group} of partition {}: {error}",
            task.partition
        )),
    }
}

impl From<DecodeError> for TaskError {
    /// Counts as a failed attempt; the next one may read other bytes, such as those of another checkpoint.
    fn from(error: DecodeError) -> TaskError {
        TaskError::task(error.to_string())
    }
}

impl From<InputError> for TaskError {
    /// Invalid bytes fail every retry; a refusal by the system may be temporary or local.
    fn from(error: InputError) -> TaskError {
        let message = error.to_string();
        let record = error.record();
        let failed = match &error {
            InputError::Unreadable { error: cause, .. } => TaskError::shared(message, cause),
            InputError::Missing { .. } => {
                TaskError::retryable(message).at(FaultPlace::SharedStorage)
            }
            InputError::Stored {
                is_passing: true, ..
            } => TaskError::retryable(message).at(FaultPlace::SharedStorage),
            InputError::LineTooLong { .. }
            | InputError::FileTooLong { .. }
            | InputError::RecordTooLong { .. }
            | InputError::BlockRecordTooLong { .. }
            | InputError::WindowTooLarge { .. } => {
                TaskError::fatal(message).at(FaultPlace::TaskMemory)
            }
            InputError::NoMatch { .. }
            | InputError::BadPattern { .. }
            | InputError::NoStorage { .. }
            | InputError::Stored { .. }
            | InputError::NotAFile { .. }
            | InputError::UnknownSize { .. }
            | InputError::Shortened { .. }
            | InputError::Changed { .. }
            | InputError::NotText { .. }
            | InputError::OtherEncoding { .. }
            | InputError::Nested { .. }
            | InputError::NotDecompressed { .. }
            | InputError::Misnamed { .. }
            | InputError::OtherFormat { .. }
            | InputError::TypedRecords { .. }
            | InputError::OtherRecords { .. }
            | InputError::PartialRecord { .. }
            | InputError::NoRecordLength
            | InputError::BadRecords { .. }
            | InputError::BadRow { .. }
            | InputError::BadTable { .. }
            | InputError::Custom { .. }
            | InputError::Damaged { .. } => TaskError::fatal(message).at(FaultPlace::Input),
        };
        TaskError {
            record: record.map(Box::new),
            ..failed
        }
    }
}
