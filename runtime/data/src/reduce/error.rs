//! Why a reduce task's input cannot be read.
//!
//! Owns the distinction that decides what is run again: a map task whose segment is lost, this reduce task
//! from its checkpoint, or this reduce task from scratch.

use crate::saved::SavedFileError;
use crate::segment::{SegmentError, WriteError};

/// Reading a reduce task's input failed.
#[derive(Debug, thiserror::Error)]
pub enum ReduceError {
    /// The segment of one map task is missing or damaged: that map task has to be run again.
    #[error("input {index}: {error}")]
    Input {
        /// Which one, in the order of `ReduceSettings::segments`.
        index: usize,
        error: SegmentError,
    },
    /// An intermediate merge of this task is damaged: this task has to be run again.
    #[error("intermediate merge: {0}")]
    Intermediate(SegmentError),
    /// An intermediate merge that a checkpoint names is missing or damaged: the task has to start from
    /// scratch.
    #[error(transparent)]
    Saved(#[from] SavedFileError),
    /// A checkpoint does not fit what is there: the task has to start from scratch.
    #[error("the saved reduce input does not fit: {0}; start the task from scratch")]
    Unfit(String),
    /// An intermediate merge could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The combiner could not decode a value.
    #[error("combining the values of key {key}: {message}")]
    Combine {
        /// The key's bytes, escaped.
        key: String,
        /// The combiner's own words.
        message: String,
    },
    /// The settings cannot be used.
    #[error("{0}")]
    Settings(String),
    /// The segments were written by jobs with different settings.
    #[error("input {index} has other settings than input 0; all segments must come from one job")]
    Mixed {
        /// The first one that differs.
        index: usize,
    },
}

impl ReduceError {
    /// The input, in the order of `ReduceSettings::segments`, whose map task has to be run again.
    pub fn lost_input(&self) -> Option<usize> {
        match self {
            ReduceError::Input { index, .. } => Some(*index),
            _ => None,
        }
    }

    /// Whether the checkpoint that was to be gone on from is to blame: starting the task from scratch helps.
    pub fn blames_checkpoint(&self) -> bool {
        matches!(self, ReduceError::Saved(_) | ReduceError::Unfit(_))
    }
}
