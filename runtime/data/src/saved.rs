//! Files of a data-plane checkpoint: their description, their move out of scratch space, and the check on
//! reopening that a file is unchanged.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::segment::{Seal, SealedSegment, Segment, SegmentError, WriteError};

/// Where a checkpoint stores its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavePlace {
    /// The checkpoint directory of the job. Names of saved files are relative to it, so that a checkpoint can
    /// refer to files of an earlier one.
    pub base: PathBuf,
    /// The attempt's existing directory for new files, relative to `base`.
    pub folder: PathBuf,
    /// Whether to sync files to disk.
    pub durable: bool,
}

/// A sealed file that a checkpoint names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedFile {
    /// Relative to the checkpoint directory.
    pub file: PathBuf,
    pub bytes: u64,
    pub records: u64,
    /// The checksum of the trailer; through footer and block checksums it covers the whole file.
    pub crc: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("saved file {}: {what}; the checkpoint is unusable, restart the task from scratch", path.display())]
pub struct SavedFileError {
    pub path: PathBuf,
    pub what: String,
}

impl SavedFileError {
    pub(crate) fn new(error: SegmentError) -> SavedFileError {
        match error {
            SegmentError::Open { path, source } => SavedFileError {
                path,
                what: format!("cannot be opened: {source}"),
            },
            SegmentError::Damaged { path, what, .. } => SavedFileError { path, what },
            SegmentError::NoPartition { ref path, .. }
            | SegmentError::OtherPartition { ref path, .. }
            | SegmentError::NoBlock { ref path, .. }
            | SegmentError::NoRecord { ref path, .. } => SavedFileError {
                path: path.clone(),
                what: error.to_string(),
            },
        }
    }
}

impl SavedFile {
    /// Opens the file and checks its length, record count and checksum.
    pub(crate) fn open(&self, base: &Path) -> Result<Arc<Segment>, SavedFileError> {
        let path = base.join(&self.file);
        let refuse = |what: String| {
            Err(SavedFileError {
                path: path.clone(),
                what,
            })
        };
        // The description is input: its path must stay inside the directory.
        let inside = |part: Component<'_>| matches!(part, Component::Normal(_));
        if self.file.as_os_str().is_empty() || !self.file.components().all(inside) {
            return refuse("invalid name: not a path inside the checkpoint directory".into());
        }
        let segment = Segment::open(&path).map_err(SavedFileError::new)?;
        let found = (segment.file_len(), segment.records(), segment.crc());
        if found != (self.bytes, self.records, self.crc) {
            return refuse(format!(
                "changed since it was saved: {} bytes, {} records and checksum {:08x}; expected {}, {} and {:08x}",
                found.0, found.1, found.2, self.bytes, self.records, self.crc
            ));
        }
        Ok(segment)
    }

    /// Returns a handle that does not remove the file on drop.
    pub(crate) fn resume(&self, segment: &Segment) -> TaskFile {
        let sealed = SealedSegment {
            path: segment.path().to_owned(),
            file_len: segment.file_len(),
            records: segment.records(),
            raw_len: segment.raw_len(),
            partitions: segment.partitions(),
            is_in_memory: false,
            crc: segment.crc(),
            digest: None,
        };
        TaskFile {
            sealed,
            saved: Some(self.clone()),
        }
    }
}

/// A sealed run or intermediate merge of this task. Dropping the handle removes the file unless it was saved.
#[derive(Debug)]
pub(crate) struct TaskFile {
    pub(crate) sealed: SealedSegment,
    saved: Option<SavedFile>,
}

impl TaskFile {
    pub(crate) fn new(sealed: SealedSegment) -> TaskFile {
        TaskFile {
            sealed,
            saved: None,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.sealed.path
    }

    /// Whether a checkpoint refers to the file, which then must stay.
    pub(crate) fn is_saved(&self) -> bool {
        self.saved.is_some()
    }

    /// Moves the file to the checkpoint directory unless it is there; dropping no longer removes it.
    pub(crate) fn save(&mut self, place: &SavePlace) -> Result<SavedFile, WriteError> {
        if let Some(saved) = &self.saved {
            return Ok(saved.clone());
        }
        let file = place
            .folder
            .join(self.sealed.path.file_name().unwrap_or_default());
        let path = place.base.join(&file);
        if path != self.sealed.path {
            Seal {
                durable: place.durable,
            }
            .relocate(&self.sealed.path, &path)?;
        }
        let SealedSegment {
            file_len: bytes,
            records,
            crc,
            ..
        } = self.sealed;
        self.sealed.path = path;
        Ok(self
            .saved
            .insert(SavedFile {
                file,
                bytes,
                records,
                crc,
            })
            .clone())
    }
}

impl Drop for TaskFile {
    fn drop(&mut self) {
        if self.saved.is_none() {
            // Fails if a rename turned the run into the sealed segment. A leftover is removed with its folder.
            let _ = fs::remove_file(&self.sealed.path);
        }
    }
}
