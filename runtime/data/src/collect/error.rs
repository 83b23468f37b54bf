//! Why collecting a map task's output fails. All errors but `Write` and `Segment` are deterministic: a retry
//! fails the same way.

use std::io;

use crate::combine::FoldError;
use crate::partition::PartitioningError;
use crate::saved::SavedFileError;
use crate::segment::{SegmentError, WriteError};

/// Why collecting a map task's output failed.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// A run or the segment could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A run could not be read back.
    #[error("sorted run: {0}")]
    Segment(#[from] SegmentError),
    /// A run of a checkpoint is missing or damaged: restart the task from scratch.
    #[error(transparent)]
    Saved(#[from] SavedFileError),
    /// The partitioning is invalid.
    #[error(transparent)]
    Partitioning(#[from] PartitioningError),
    /// The settings are invalid.
    #[error("{0}")]
    Settings(String),
    /// A custom partitioner chose a partition that does not exist.
    #[error(
        "the partitioner returned {chosen} for key {key}; the job has {partitions} partitions, numbered from 0"
    )]
    PartitionOutOfRange {
        /// The partitioner's result.
        chosen: u32,
        partitions: u32,
        /// Quoted, escaped and cut.
        key: String,
    },
    /// A record does not have the lengths of the fixed encoding.
    #[error(
        "record with a key of {key} bytes and a value of {value} bytes; this job has fixed records of {expected_key} + {expected_value} bytes"
    )]
    NotFixed {
        key: usize,
        value: usize,
        expected_key: u32,
        expected_value: u32,
    },
    /// `emit_bytes` was called on a combining collector or `emit_value` on a plain one.
    #[error("{called} on a collector made by {made}")]
    WrongMode {
        called: &'static str,
        /// The constructor used.
        made: &'static str,
    },
    /// The combiner could not decode an encoded value.
    #[error("combining the values of key {key}: {message}")]
    Combine {
        /// Quoted, escaped and cut.
        key: String,
        /// The combiner's message.
        message: String,
    },
    /// `finish` after `check` had returned an error.
    #[error("collecting failed earlier; `check` returned the first error")]
    AlreadyFailed,
    /// The spill thread could not be started.
    #[error("cannot start the spill thread: {0}")]
    SpillThread(io::Error),
    #[error("the spill thread panicked: {0}")]
    SpillPanicked(String),
}

impl CollectError {
    /// Whether the resumed checkpoint caused the error: restarting the task from scratch helps.
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
