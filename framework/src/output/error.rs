//! Errors of writing, assembling and resuming an output.

use std::io;
use std::path::PathBuf;

use napreduce_protocol::TaskError;
use napreduce_task::CheckpointError;

/// The error for a part file that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write output {path}: {source}{}", advice(.source))]
pub struct OutputError {
    /// The part file, under its temporary name.
    pub path: PathBuf,
    /// The error of the system.
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
            // An invalid definition fails on every retry.
            io::ErrorKind::InvalidInput => TaskError::fatal(message),
            _ => TaskError::shared(message, &error.source),
        }
    }
}

/// The error for the names of a job's outputs.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OutputNameError {
    #[error("output name {0:?} is reserved for part files; rename the output")]
    Reserved(String),
    #[error(
        "invalid output name {0:?}; use up to 100 letters, digits, - and _, beginning with a letter"
    )]
    Invalid(String),
    #[error("two outputs have the name {0:?}; rename one")]
    Duplicate(String),
}

/// The error for a part file that could not be assembled.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PiecesError {
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The checkpoint is unusable.
    #[error("piece {} of the output is damaged: {what}", path.display())]
    Damaged { path: PathBuf, what: String },
}

/// The reason why a task does not start from its checkpoint.
pub(crate) enum ResumeError {
    /// It starts from scratch instead.
    Checkpoint(String),
    /// Starting from scratch would fail too.
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
