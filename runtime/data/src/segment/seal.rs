//! Sealing a file: it appears under its final name complete, or not at all. Syncs if durability is required.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::error::WriteError;
use crate::activity::block_moved;

/// Bytes copied at a time; each counts as progress.
const COPY_BYTES: u64 = 4 << 20;

/// Returns the temporary name of `target`, in the same directory.
pub(super) fn partial_name(target: &Path) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(".partial");
    PathBuf::from(name)
}

/// A file under its temporary name; dropping it removes the file unless it was published.
#[derive(Debug)]
pub(super) struct PartialFile {
    pub(super) path: PathBuf,
    pub(super) target: PathBuf,
    sealed: bool,
}

impl PartialFile {
    /// Names the temporary file of `target` without creating it.
    pub(super) fn new(target: &Path) -> PartialFile {
        PartialFile {
            path: partial_name(target),
            target: target.to_owned(),
            sealed: false,
        }
    }

    /// Creates the file, empty.
    pub(super) fn create(&self) -> Result<File, WriteError> {
        File::create(&self.path).map_err(|source| WriteError::new("create", &self.path, source))
    }

    /// Renames the complete file to its final name.
    pub(super) fn publish(&mut self, file: &File, seal: Seal) -> Result<(), WriteError> {
        if seal.durable {
            file.sync_data()
                .map_err(|source| WriteError::new("sync", &self.path, source))?;
        }
        fs::rename(&self.path, &self.target)
            .map_err(|source| WriteError::new("rename", &self.path, source))?;
        self.sealed = true;
        seal.sync_directory(&self.target)
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.sealed {
            // The file may not exist. The first error is the one to report.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Copies the rest of a file to the end of another; returns the number of bytes.
pub(super) fn copy_rest(source: &File, file: &mut File) -> io::Result<u64> {
    let mut all = 0;
    loop {
        match io::copy(&mut source.take(COPY_BYTES), file)? {
            0 => return Ok(all),
            copied => all += copied,
        }
        block_moved();
    }
}

/// How a task seals its files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seal {
    /// Whether to sync data and directory before a file counts as sealed.
    pub durable: bool,
}

impl Seal {
    /// Moves a sealed file; copies it if the target is on another file system.
    pub(crate) fn relocate(self, from: &Path, to: &Path) -> Result<(), WriteError> {
        if self.durable {
            let file = File::open(from).map_err(|source| WriteError::new("open", from, source))?;
            file.sync_data()
                .map_err(|source| WriteError::new("sync", from, source))?;
        }
        match fs::rename(from, to) {
            Ok(()) => self.sync_directory(to),
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => self.copy(from, to),
            Err(source) => Err(WriteError::new("move", from, source)),
        }
    }

    fn copy(self, from: &Path, to: &Path) -> Result<(), WriteError> {
        let mut partial = PartialFile::new(to);
        let source = File::open(from).map_err(|source| WriteError::new("open", from, source))?;
        let mut file = partial.create()?;
        copy_rest(&source, &mut file)
            .map_err(|source| WriteError::new("write", &partial.path, source))?;
        partial.publish(&file, self)?;
        fs::remove_file(from).map_err(|source| WriteError::new("remove", from, source))
    }

    fn sync_directory(self, target: &Path) -> Result<(), WriteError> {
        if !self.durable {
            return Ok(());
        }
        let directory = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        File::open(directory)
            .and_then(|opened| opened.sync_all())
            .map_err(|source| WriteError::new("sync", directory, source))
    }
}
