//! Why an output could not be written, put together or resumed.

use std::io;
use std::path::PathBuf;

use napreduce_protocol::TaskError;
use napreduce_task::CheckpointError;

/// A part file that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write output {path}: {source}{}", advice(.source))]
pub struct OutputError {
    /// The part file, under its temporary name.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull => "; free some space there or choose another --output",
        io::ErrorKind::QuotaExceeded => "; raise the quota or choose another --output",
        io::ErrorKind::PermissionDenied => "; check the permissions of the output directory",
        _ => "",
    }
}

impl From<OutputError> for TaskError {
    fn from(error: OutputError) -> TaskError {
        let message = error.to_string();
        match error.source.kind() {
            io::ErrorKind::InvalidData => TaskError::task(message),
            // What the definition does wrong it does at every try.
            io::ErrorKind::InvalidInput => TaskError::fatal(message),
            _ => TaskError::shared(message, &error.source),
        }
    }
}

/// A part file could not be put together.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PiecesError {
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The checkpoint is of no use.
    #[error("piece {} of the output is damaged: {what}", path.display())]
    Damaged { path: PathBuf, what: String },
}

/// Why a task does not start from its checkpoint.
pub(crate) enum ResumeError {
    /// It starts from scratch, then.
    Checkpoint(String),
    /// It could not start from scratch either.
    Task(TaskError),
}

impl From<TaskError> for ResumeError {
    fn from(error: TaskError) -> ResumeError {
        ResumeError::Task(error)
    }
}

impl From<CheckpointError> for ResumeError {
    fn from(error: CheckpointError) -> ResumeError {
        ResumeError::Checkpoint(error.to_string())
    }
}

impl From<PiecesError> for ResumeError {
    fn from(error: PiecesError) -> ResumeError {
        match error {
            PiecesError::Damaged { .. } => ResumeError::Checkpoint(error.to_string()),
            PiecesError::Output(error) => ResumeError::Task(error.into()),
        }
    }
}
