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

/// A file under its temporary name, empty.
pub(super) fn create_file(partial: &Path) -> Result<File, WriteError> {
    File::create(partial).map_err(|source| WriteError::new("create", partial, source))
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
    /// Gives the complete file `partial` its final name.
    pub(super) fn publish(self, file: &File, partial: &Path, target: &Path) -> Result<(), WriteError> {
        if self.durable {
            file.sync_data().map_err(|source| WriteError::new("sync", partial, source))?;
        }
        fs::rename(partial, target)
            .map_err(|source| WriteError::new("rename to its final name", partial, source))?;
        self.sync_directory(target)
    }

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
        let partial = partial_name(to);
        let source = File::open(from).map_err(|source| WriteError::new("open", from, source))?;
        let mut file = create_file(&partial)?;
        copy_on(&source, &mut file).map_err(|source| WriteError::new("write", &partial, source))?;
        self.publish(&file, &partial, to)?;
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
