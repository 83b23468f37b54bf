//! Why a reduce task's input cannot be read. The variant decides what is retried: a map task whose segment is
//! lost, this reduce task from its checkpoint, or this reduce task from scratch.

use crate::saved::SavedFileError;
use crate::segment::{SegmentError, WriteError};

/// Why reading a reduce task's input failed.
#[derive(Debug, thiserror::Error)]
pub enum ReduceError {
    /// A map task's segment is missing or damaged: rerun that map task.
    #[error("input {index}: {error}")]
    Input {
        /// Index in `ReduceSettings::segments`.
        index: usize,
        error: SegmentError,
    },
    /// An intermediate merge of this task is damaged: rerun this task.
    #[error("intermediate merge: {0}")]
    Intermediate(SegmentError),
    /// An intermediate merge of a checkpoint is missing or damaged: restart the task from scratch.
    #[error(transparent)]
    Saved(#[from] SavedFileError),
    /// A checkpoint does not match the inputs: restart the task from scratch.
    #[error("the saved reduce input does not match: {0}; restart the task from scratch")]
    Unfit(String),
    /// An intermediate merge could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The combiner could not decode a value.
    #[error("combining the values of key {key}: {message}")]
    Combine {
        /// Quoted, escaped and cut.
        key: String,
        /// The combiner's message.
        message: String,
    },
    /// The settings are invalid.
    #[error("{0}")]
    Settings(String),
    /// The segments belong to jobs with different settings.
    #[error(
        "input {index} and input 0 have different settings; all segments must come from one job"
    )]
    Mixed {
        /// The first input that differs.
        index: usize,
    },
}

impl ReduceError {
    /// Returns the index in `ReduceSettings::segments` whose map task has to be rerun.
    pub fn lost_input(&self) -> Option<usize> {
        match self {
            ReduceError::Input { index, .. } => Some(*index),
            _ => None,
        }
    }

    /// Whether the resumed checkpoint caused the error: restarting the task from scratch helps.
    pub fn blames_checkpoint(&self) -> bool {
        matches!(self, ReduceError::Saved(_) | ReduceError::Unfit(_))
    }
}
