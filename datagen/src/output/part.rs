//! The part files of one output while they are written.
//!
//! Owns which bytes of the stream go into which file, the files' names before and after they are complete,
//! and how long each stays open. Does not own the directory or the bytes.

use super::{FileNames, OutputError, refused};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Files are written under a name that readers of the directory skip, and renamed when all of them are
/// complete.
const PARTIAL_PREFIX: &str = ".part-";
const PARTIAL_SUFFIX: &str = ".partial";

/// Whether this is the name of a part that was never completed.
pub(super) fn is_partial(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    name.starts_with(PARTIAL_PREFIX) && name.ends_with(PARTIAL_SUFFIX)
}

/// One file: bytes `start..end` of the stream.
struct Part {
    complete: PathBuf,
    partial: PathBuf,
    start: u64,
    end: u64,
    /// Open from the first write to the last, so that thousands of parts never need as many descriptors at
    /// once.
    open: Mutex<Option<Arc<File>>>,
    unwritten: AtomicU64,
}

/// All part files of one output, written at any offsets by any threads.
pub(super) struct Parts {
    parts: Vec<Part>,
}

impl Parts {
    /// Parts in `directory` that end at the offsets `ends`, which ascend. Touches no file.
    pub(super) fn plan(directory: &Path, names: FileNames, ends: &[u64]) -> Self {
        let (before, behind) = names.around_number();
        let mut start = 0;
        let mut parts = Vec::with_capacity(ends.len());
        for (index, &end) in ends.iter().enumerate() {
            parts.push(Part {
                complete: directory.join(format!("{before}{index:05}{behind}")),
                partial: directory.join(format!("{PARTIAL_PREFIX}{index:05}{PARTIAL_SUFFIX}")),
                start,
                end,
                open: Mutex::new(None),
                unwritten: AtomicU64::new(end - start),
            });
            start = end;
        }
        Self { parts }
    }

    /// Creates the parts that no write will reach because they are empty.
    pub(super) fn create_empty(&self) -> Result<(), OutputError> {
        for part in self.parts.iter().filter(|part| part.start == part.end) {
            File::create(&part.partial).map_err(refused("create", &part.partial))?;
        }
        Ok(())
    }

    /// Writes `bytes`, which start at `offset` of the stream, into the part or parts they belong to.
    pub(super) fn write(&self, mut offset: u64, mut bytes: &[u8]) -> Result<(), OutputError> {
        let first = self.parts.partition_point(|part| part.end <= offset);
        for part in &self.parts[first..] {
            if bytes.is_empty() {
                break;
            }
            let room = part.end - offset;
            let length = usize::try_from(room).map_or(bytes.len(), |room| room.min(bytes.len()));
            let (own, rest) = bytes.split_at(length);
            part.write(offset - part.start, own)?;
            offset += length as u64;
            bytes = rest;
        }
        Ok(())
    }

    /// Gives the complete files their final names, in order, and returns those.
    pub(super) fn publish(&self) -> Result<Vec<PathBuf>, OutputError> {
        let mut files = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            fs::rename(&part.partial, &part.complete).map_err(refused("complete", &part.complete))?;
            files.push(part.complete.clone());
        }
        Ok(files)
    }

    /// Removes whatever there is after a failure.
    pub(super) fn discard(&self) {
        for part in &self.parts {
            // Best effort on the way to reporting the failure itself; most parts may not even exist yet.
            let _ = fs::remove_file(&part.partial);
        }
    }
}

impl Part {
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), OutputError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let file = self.file()?;
        file.write_all_at(bytes, offset).map_err(refused("write", &self.complete))?;
        let length = bytes.len() as u64;
        if self.unwritten.fetch_sub(length, Ordering::Relaxed) == length {
            *self.open.lock().expect("nothing panics while it holds this lock") = None;
        }
        Ok(())
    }

    fn file(&self) -> Result<Arc<File>, OutputError> {
        let mut open = self.open.lock().expect("nothing panics while it holds this lock");
        if let Some(file) = &*open {
            return Ok(Arc::clone(file));
        }
        let file = File::create(&self.partial).map_err(refused("create", &self.complete))?;
        let file = Arc::new(file);
        *open = Some(Arc::clone(&file));
        Ok(file)
    }
}
