//! Why a file of the history cannot be written.
//!
//! Owns naming it. Does not own which files there are.

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::files::recording::RecordingError;

/// A file of the history cannot be written or removed.
#[derive(Debug, Error)]
#[error("{path}: {source}")]
pub struct HistoryError {
    path: PathBuf,
    source: RecordingError,
}

impl HistoryError {
    pub(crate) fn new(path: &Path, source: RecordingError) -> HistoryError {
        HistoryError { path: path.to_owned(), source }
    }
}
