//! Part files of one output while they are written: their byte ranges, names and open descriptors.

use super::{FileNames, OutputError, io_error};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Files are written under names that readers of the directory skip, and renamed when all are complete.
const PARTIAL_PREFIX: &str = ".part-";
const PARTIAL_SUFFIX: &str = ".partial";

/// Returns whether this is the name of an incomplete part.
pub(super) fn is_partial(path: &Path) -> bool {
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy())
        .unwrap_or_default();
    name.starts_with(PARTIAL_PREFIX) && name.ends_with(PARTIAL_SUFFIX)
}

/// One file: bytes `start..end` of the stream.
struct Part {
    complete: PathBuf,
    partial: PathBuf,
    start: u64,
    end: u64,
    /// Open from the first write to the last, so that thousands of parts do not exhaust descriptors.
    open: Mutex<Option<Arc<File>>>,
    unwritten: AtomicU64,
}

/// Part files of one output, written at any offset by any thread.
pub(super) struct Parts {
    parts: Vec<Part>,
}

impl Parts {
    /// Plans parts in `directory` that end at the ascending offsets `ends`. Touches no file.
    pub(super) fn plan(directory: &Path, names: FileNames, ends: &[u64]) -> Self {
        let (prefix, suffix) = names.affixes();
        let mut start = 0;
        let mut parts = Vec::with_capacity(ends.len());
        for (index, &end) in ends.iter().enumerate() {
            parts.push(Part {
                complete: directory.join(format!("{prefix}{index:05}{suffix}")),
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

    /// Creates the empty parts, which no write reaches.
    pub(super) fn create_empty(&self) -> Result<(), OutputError> {
        for part in self.parts.iter().filter(|part| part.start == part.end) {
            File::create(&part.partial).map_err(io_error("create", &part.partial))?;
        }
        Ok(())
    }

    /// Writes `bytes`, which start at `offset` of the stream, into the parts they belong to.
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

    /// Renames the complete files in order and returns their names.
    pub(super) fn publish(&self) -> Result<Vec<PathBuf>, OutputError> {
        let mut files = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            fs::rename(&part.partial, &part.complete)
                .map_err(io_error("complete", &part.complete))?;
            files.push(part.complete.clone());
        }
        Ok(files)
    }

    /// Removes the partial files after an error.
    pub(super) fn discard(&self) {
        for part in &self.parts {
            // Best effort, since an error is reported already; most parts may not exist.
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
        file.write_all_at(bytes, offset)
            .map_err(io_error("write", &self.complete))?;
        let length = bytes.len() as u64;
        if self.unwritten.fetch_sub(length, Ordering::Relaxed) == length {
            *self
                .open
                .lock()
                .expect("no thread panics while holding this lock") = None;
        }
        Ok(())
    }

    fn file(&self) -> Result<Arc<File>, OutputError> {
        let mut open = self
            .open
            .lock()
            .expect("no thread panics while holding this lock");
        if let Some(file) = &*open {
            return Ok(Arc::clone(file));
        }
        let file = File::create(&self.partial).map_err(io_error("create", &self.complete))?;
        let file = Arc::new(file);
        *open = Some(Arc::clone(&file));
        Ok(file)
    }
}
