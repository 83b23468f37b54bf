//! Why a reduce task's input cannot be read.
//!
//! Owns the distinction that decides what is run again: a map task whose segment is lost, or this reduce task.

use std::io;
use std::path::PathBuf;

use crate::segment::{SegmentError, WriteError};

/// Reading a reduce task's input failed.
#[derive(Debug, thiserror::Error)]
pub enum ReduceError {
    /// The segment of one map task is missing or damaged: that map task has to be run again.
    #[error("input {index}: {error}")]
    Input {
        /// Which one, in the order of `ReduceSettings::segments`.
        index: usize,
        /// What is wrong with it.
        error: SegmentError,
    },
    /// An intermediate merge of this task is damaged: this task has to be run again.
    #[error("intermediate merge: {0}")]
    Intermediate(SegmentError),
    /// An intermediate merge could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// An intermediate merge could not be removed.
    #[error("cannot remove {}: {source}", path.display())]
    Scratch {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
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
}
