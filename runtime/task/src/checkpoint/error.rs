//! Errors of writing and reading checkpoints. A task that cannot be restored starts from scratch.

use std::io;
use std::path::{Path, PathBuf};

use napreduce_engine::{AttemptId, TaskId};

/// A checkpoint could not be written or is not usable.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// A file operation failed.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// The operation, such as `write`.
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// The content differs from what was written.
    #[error("checkpoint {} is damaged: {what}", path.display())]
    Damaged {
        path: PathBuf,
        /// The mismatch.
        what: String,
    },
    /// Another version of this program wrote it.
    #[error("checkpoint {} has version {found}, but this program reads version {known}", path.display())]
    Version {
        path: PathBuf,
        /// The version of the file.
        found: u32,
        /// The version that this program reads.
        known: u32,
    },
    /// The checkpoint belongs to another task.
    #[error("checkpoint {} belongs to {attempt} instead of {wanted}", path.display())]
    OtherTask {
        path: PathBuf,
        /// The attempt that wrote it.
        attempt: AttemptId,
        /// The task that requested it.
        wanted: TaskId,
    },
    /// A state exceeds the maximum size.
    #[error(
        "{what} has {bytes} bytes (limit {limit}); save less state, or return Save::Unsupported from `save`"
    )]
    TooLarge {
        /// The state, for messages.
        what: &'static str,
        bytes: u64,
        limit: u64,
    },
}

impl CheckpointError {
    pub(super) fn damaged(path: &Path, what: impl Into<String>) -> CheckpointError {
        CheckpointError::Damaged {
            path: path.to_owned(),
            what: what.into(),
        }
    }
}

/// The result of a file call.
pub(crate) trait FileResult<T> {
    /// Adds the operation and the path to an error.
    fn at(self, doing: &'static str, path: &Path) -> Result<T, CheckpointError>;
}

impl<T> FileResult<T> for io::Result<T> {
    fn at(self, doing: &'static str, path: &Path) -> Result<T, CheckpointError> {
        self.map_err(|source| CheckpointError::Io {
            doing,
            path: path.to_owned(),
            source,
        })
    }
}
