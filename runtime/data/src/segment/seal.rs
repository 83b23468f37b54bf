//! How a file gets its final name: all of it at once, or not at all.
//!
//! Owns temporary names, renaming, and syncing when durability is asked for. Does not own what is in the
//! file.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::writer::WriteError;
use crate::activity::block_moved;

/// Bytes of a file that are copied at a time: each is a sign that the copy gets on.
const COPY_BYTES: u64 = 4 << 20;

/// The name under which `target` is written before it is sealed, in the same directory.
pub(super) fn partial_name(target: &Path) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(".partial");
    PathBuf::from(name)
}

/// A file under its temporary name, which goes with this unless it has got its own.
#[derive(Debug)]
pub(super) struct PartialFile {
    pub(super) path: PathBuf,
    pub(super) target: PathBuf,
    sealed: bool,
}

impl PartialFile {
    /// That of `target`, which is still to be made.
    pub(super) fn of(target: &Path) -> PartialFile {
        PartialFile { path: partial_name(target), target: target.to_owned(), sealed: false }
    }

    /// Makes it, empty.
    pub(super) fn create(&self) -> Result<File, WriteError> {
        File::create(&self.path).map_err(|source| WriteError::new("create", &self.path, source))
    }

    /// Gives the complete file its final name.
    pub(super) fn publish(&mut self, file: &File, seal: Seal) -> Result<(), WriteError> {
        if seal.durable {
            file.sync_data().map_err(|source| WriteError::new("sync", &self.path, source))?;
        }
        fs::rename(&self.path, &self.target)
            .map_err(|source| WriteError::new("rename to its final name", &self.path, source))?;
        self.sealed = true;
        seal.sync_directory(&self.target)
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.sealed {
            // It may never have been made; that it cannot be removed changes nothing about the first error.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Copies what is left of a file to the end of another; how many bytes.
pub(super) fn copy_on(source: &File, file: &mut File) -> io::Result<u64> {
    let mut all = 0;
    loop {
        match io::copy(&mut source.take(COPY_BYTES), file)? {
            0 => return Ok(all),
            copied => all += copied,
        }
        block_moved();
    }
}

/// How files are sealed in one task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seal {
    /// Whether data and directory entry are on the disk before the file counts as sealed.
    pub durable: bool,
}

impl Seal {
    /// Moves a sealed file to another name; by a copy when that is on another file system.
    pub(crate) fn relocate(self, from: &Path, to: &Path) -> Result<(), WriteError> {
        if self.durable {
            let file = File::open(from).map_err(|source| WriteError::new("open", from, source))?;
            file.sync_data().map_err(|source| WriteError::new("sync", from, source))?;
        }
        match fs::rename(from, to) {
            Ok(()) => self.sync_directory(to),
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => self.copy(from, to),
            Err(source) => Err(WriteError::new("move to its final place", from, source)),
        }
    }

    fn copy(self, from: &Path, to: &Path) -> Result<(), WriteError> {
        let mut partial = PartialFile::of(to);
        let source = File::open(from).map_err(|source| WriteError::new("open", from, source))?;
        let mut file = partial.create()?;
        copy_on(&source, &mut file).map_err(|source| WriteError::new("write", &partial.path, source))?;
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
