//! One source of a reduce task's merge: a segment, and where it comes from.
//!
//! Owns opening it again, and telling an input's damage from that of a merged file. Does not own which
//! sources stay open (`opening`) nor merging them (`sources`).

use std::path::PathBuf;
use std::sync::Arc;

use crate::reduce::ReduceError;
use crate::saved::{SavedFileError, TaskFile};
use crate::segment::{Cursor, Segment, SegmentError};

/// What a source that is in memory holds beside its bytes, roughly.
pub(super) const SOURCE_BYTES: usize = 512;

/// A segment and where it comes from.
pub(super) struct Source {
    /// None while it is closed.
    pub(super) segment: Option<Arc<Segment>>,
    pub(super) origin: Origin,
    /// The first record that is read, if it is not the first one there is.
    pub(super) start: Option<u64>,
    /// Stored bytes of the partition.
    pub(super) size: u64,
    /// What a merge needs for its decompressed block.
    pub(super) decompressed: usize,
}

pub(super) enum Origin {
    /// The segment of a map task: its place among the inputs.
    Input(usize),
    /// An intermediate merge.
    Merged(TaskFile),
}

impl Source {
    /// Whether it was read into memory.
    pub(super) fn is_read(&self) -> bool {
        self.segment.as_ref().is_some_and(|segment| !segment.is_mapped())
    }

    /// The memory it holds because of that.
    pub(super) fn held_bytes(&self) -> usize {
        let held = self.segment.as_ref().filter(|segment| !segment.is_mapped());
        held.map_or(0, |segment| segment.heap_bytes() + SOURCE_BYTES)
    }

    pub(super) fn open(&self, inputs: &[PathBuf]) -> Result<Arc<Segment>, ReduceError> {
        if let Some(segment) = &self.segment {
            return Ok(segment.clone());
        }
        let path = match &self.origin {
            Origin::Input(index) => &inputs[*index],
            Origin::Merged(file) => file.path(),
        };
        Segment::open(path).map_err(|error| self.origin.lost(error))
    }

    /// Before the first record that is read.
    pub(super) fn cursor(&self, inputs: &[PathBuf], partition: u32) -> Result<Cursor, ReduceError> {
        let segment = self.open(inputs)?;
        let cursor = match self.start {
            None => segment.cursor(partition),
            Some(ordinal) => segment.cursor_at(partition, ordinal),
        };
        cursor.map_err(|error| self.origin.lost(error))
    }
}

impl Origin {
    pub(super) fn lost(&self, error: SegmentError) -> ReduceError {
        match self {
            Origin::Input(index) => ReduceError::Input { index: *index, error },
            Origin::Merged(file) if file.is_saved() => ReduceError::Saved(SavedFileError::of(error)),
            Origin::Merged(_) => ReduceError::Intermediate(error),
        }
    }
}
