//! The error of a call, with its operation and path.

use std::io;

/// A failed call.
#[derive(Debug, thiserror::Error)]
#[error("cannot {verb} {path}: {source}")]
pub(in crate::output) struct StorageError {
    /// The operation, such as `sync`.
    verb: &'static str,
    /// The path; for a move, both paths.
    path: String,
    source: io::Error,
}

impl StorageError {
    pub(in crate::output) fn new(
        verb: &'static str,
        path: String,
        source: io::Error,
    ) -> StorageError {
        StorageError { verb, path, source }
    }

    pub(in crate::output) fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }

    /// Returns the system's error.
    pub(in crate::output) fn into_system(self) -> io::Error {
        self.source
    }
}
