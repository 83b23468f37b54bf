//! Files that outlive the attempt that wrote them: what a checkpoint of the data plane names.
//!
//! Owns the description of such a file, its way from scratch to where checkpoints are kept, and the check
//! that it is the very file when it is opened again. Does not own which files make a checkpoint
//! (`collect::save`, `reduce::saved`) nor the file that holds the descriptions, which is the caller's.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::segment::{Seal, SealedSegment, Segment, SegmentError, WriteError};

/// Where a checkpoint's files go, and what they are called in its description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavePlace {
    /// The directory of all checkpoints of a job: names of saved files are relative to it, so that a later
    /// checkpoint can name files of an earlier one.
    pub base: PathBuf,
    /// The existing directory for new files, relative to `base`: the attempt's own.
    pub folder: PathBuf,
    /// Whether the files are on the disk, not only in the page cache, when they count as saved.
    pub durable: bool,
}

/// A sealed file that a checkpoint names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedFile {
    /// Its name, relative to the directory of checkpoints.
    pub file: PathBuf,
    pub bytes: u64,
    pub records: u64,
    /// The checksum of its trailer, which covers the footer's, which covers that of each block.
    pub crc: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("saved file {}: {what}; the checkpoint that names it is of no use, start its task from scratch", path.display())]
pub struct SavedFileError {
    pub path: PathBuf,
    pub what: String,
}

impl SavedFileError {
    /// The error of a saved file that could not be read.
    pub(crate) fn of(error: SegmentError) -> SavedFileError {
        match error {
            SegmentError::Open { path, source } => {
                SavedFileError { path, what: format!("cannot be opened: {source}") }
            }
            SegmentError::Damaged { path, what, .. } => SavedFileError { path, what },
            SegmentError::NoPartition { ref path, .. }
            | SegmentError::OtherPartition { ref path, .. }
            | SegmentError::NoBlock { ref path, .. }
            | SegmentError::NoRecord { ref path, .. } => {
                SavedFileError { path: path.clone(), what: error.to_string() }
            }
        }
    }
}

impl SavedFile {
    /// Opens the file, if it is the one that was saved.
    pub(crate) fn open(&self, base: &Path) -> Result<Arc<Segment>, SavedFileError> {
        let path = base.join(&self.file);
        let refuse = |what: String| Err(SavedFileError { path: path.clone(), what });
        // What is read from a description must not lead out of the directory.
        let inside = |part: Component<'_>| matches!(part, Component::Normal(_));
        if self.file.as_os_str().is_empty() || !self.file.components().all(inside) {
            return refuse("is no name inside the directory of checkpoints".into());
        }
        let segment = Segment::open(&path).map_err(SavedFileError::of)?;
        let found = (segment.file_len(), segment.records(), segment.crc());
        if found != (self.bytes, self.records, self.crc) {
            return refuse(format!(
                "another file than was saved: {} bytes, {} records and checksum {:08x}, not {}, {} and {:08x}",
                found.0, found.1, found.2, self.bytes, self.records, self.crc
            ));
        }
        Ok(segment)
    }

    /// The file as the handle of a task that goes on with it.
    pub(crate) fn resume(&self, segment: &Segment) -> TaskFile {
        let sealed = SealedSegment {
            path: segment.path().to_owned(),
            file_len: segment.file_len(),
            records: segment.records(),
            raw_len: segment.raw_len(),
            partitions: segment.partitions(),
            is_in_memory: false,
            crc: segment.crc(),
        };
        TaskFile { sealed, saved: Some(self.clone()) }
    }
}

/// A sealed file of this task's own: a run, or an intermediate merge. It is removed with its handle, unless
/// it was saved.
#[derive(Debug)]
pub(crate) struct TaskFile {
    pub(crate) sealed: SealedSegment,
    saved: Option<SavedFile>,
}

impl TaskFile {
    pub(crate) fn new(sealed: SealedSegment) -> TaskFile {
        TaskFile { sealed, saved: None }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.sealed.path
    }

    /// Whether a checkpoint names it: then it stays where it is.
    pub(crate) fn is_saved(&self) -> bool {
        self.saved.is_some()
    }

    /// Moves the file to where checkpoints are kept, if it is not there; from then on it is not removed.
    pub(crate) fn save(&mut self, place: &SavePlace) -> Result<SavedFile, WriteError> {
        if let Some(saved) = &self.saved {
            return Ok(saved.clone());
        }
        let file = place.folder.join(self.sealed.path.file_name().unwrap_or_default());
        let path = place.base.join(&file);
        if path != self.sealed.path {
            Seal { durable: place.durable }.relocate(&self.sealed.path, &path)?;
        }
        let SealedSegment { file_len: bytes, records, crc, .. } = self.sealed;
        self.sealed.path = path;
        Ok(self.saved.insert(SavedFile { file, bytes, records, crc }).clone())
    }
}

impl Drop for TaskFile {
    fn drop(&mut self) {
        if self.saved.is_none() {
            // It may have become the sealed segment by a rename; and a scratch file that stays is removed
            // with its folder.
            let _ = fs::remove_file(&self.sealed.path);
        }
    }
}
