//! File system metadata that shows whether a file was changed or replaced.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A file's identity at one moment. Unlike the modification time, the change time cannot be set by users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// Stamps the file at `path` without following links.
    pub(crate) fn at(path: &Path) -> io::Result<Stamp> {
        fs::symlink_metadata(path).map(|metadata| Stamp::from_metadata(&metadata))
    }

    /// Stamps an open or listed file.
    pub(crate) fn from_metadata(metadata: &Metadata) -> Stamp {
        Stamp {
            device: metadata.dev(),
            inode: metadata.ino(),
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}
