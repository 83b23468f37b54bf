//! Errors of writing and reading checkpoints. A task that cannot be restored starts from scratch.

use std::io;
use std::path::{Path, PathBuf};

use napreduce_engine::{AttemptId, TaskId};

/// A checkpoint could not be written, or is none to start from.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The operating system refused something.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was being done, such as `write`.
        doing: &'static str,
        /// To which file.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// What was read is not what was written.
    #[error("checkpoint {} is damaged: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        what: String,
    },
    /// Another version of this program wrote it.
    #[error("checkpoint {} has version {found}, but this program reads version {known}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The version it has.
        found: u32,
        /// The one that can be read.
        known: u32,
    },
    /// It is of another task.
    #[error("checkpoint {} belongs to {attempt} instead of {wanted}", path.display())]
    OtherTask {
        /// The file.
        path: PathBuf,
        /// Who wrote it.
        attempt: AttemptId,
        /// Whose was wanted.
        wanted: TaskId,
    },
    /// A state so large that no checkpoint holds it.
    #[error(
        "{what} has {bytes} bytes (limit {limit}); save less state, or return Save::Unsupported from `save`"
    )]
    TooLarge {
        /// Whose state.
        what: &'static str,
        /// How large it is.
        bytes: u64,
        /// How large it may be.
        limit: u64,
    },
}

impl CheckpointError {
    pub(super) fn io(doing: &'static str, path: &Path, source: io::Error) -> CheckpointError {
        CheckpointError::Io { doing, path: path.to_owned(), source }
    }

    pub(super) fn damaged(path: &Path, what: impl Into<String>) -> CheckpointError {
        CheckpointError::Damaged { path: path.to_owned(), what: what.into() }
    }
}
