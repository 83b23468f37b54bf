//! Why collecting a map task's output fails.
//!
//! Owns the error type alone. All but `Write` and `Segment` are the task's own fault: a retry meets them
//! again.

use std::io;

use crate::combine::FoldError;
use crate::partition::PartitioningError;
use crate::saved::SavedFileError;
use crate::segment::{SegmentError, WriteError};

/// Collecting a map task's output failed.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// A run or the segment could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A run could not be read back.
    #[error("sorted run: {0}")]
    Segment(#[from] SegmentError),
    /// A run that a checkpoint names is missing or damaged: the task has to start from scratch.
    #[error(transparent)]
    Saved(#[from] SavedFileError),
    /// The settings name an impossible partitioning.
    #[error(transparent)]
    Partitioning(#[from] PartitioningError),
    /// The settings cannot be used.
    #[error("{0}")]
    Settings(String),
    /// A custom partitioner chose a partition that does not exist.
    #[error("the partitioner chose partition {chosen} for key {key}; there are {partitions}, from 0")]
    PartitionOutOfRange {
        /// What it chose.
        chosen: u32,
        partitions: u32,
        /// The key's bytes, escaped and cut.
        key: String,
    },
    /// A record's lengths are not those of the fixed encoding.
    #[error(
        "record with a key of {key} bytes and a value of {value} bytes in a job of fixed records of {expected_key} + {expected_value} bytes"
    )]
    NotFixed {
        /// Length of the record's key.
        key: usize,
        /// Length of the record's value.
        value: usize,
        /// Length that every key must have.
        expected_key: u32,
        /// Length that every value must have.
        expected_value: u32,
    },
    /// `emit_bytes` was called on a combining collector or `emit_value` on a plain one.
    #[error("{called} on a collector made by {made}")]
    WrongMode {
        called: &'static str,
        /// The constructor used.
        made: &'static str,
    },
    /// The combiner could not decode a value that it had encoded.
    #[error("combining the values of key {key}: {message}")]
    Combine {
        /// The key's bytes, escaped and cut.
        key: String,
        /// The combiner's own words.
        message: String,
    },
    /// `finish` after `check` had returned an error.
    #[error("collecting failed before; the first error was returned by check")]
    AlreadyFailed,
    /// The thread that writes runs could not be started.
    #[error("cannot start the thread that writes sorted runs: {0}")]
    SpillThread(io::Error),
    #[error("the thread that writes sorted runs panicked: {0}")]
    SpillPanicked(String),
}

impl CollectError {
    /// Whether the checkpoint that was resumed is to blame: starting the task from scratch helps.
    pub fn blames_checkpoint(&self) -> bool {
        matches!(self, CollectError::Saved(_))
    }
}

impl From<FoldError> for CollectError {
    fn from(error: FoldError) -> CollectError {
        match error {
            FoldError::Source(error) => CollectError::Segment(error.error),
            FoldError::Write(error) => CollectError::Write(error),
            FoldError::Combine(key, message) => CollectError::Combine { key, message },
        }
    }
}
