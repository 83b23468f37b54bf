//! What the file system knows about a file: enough to see that it has been changed or replaced.
//!
//! Owns what is compared. Does not own what a file should hold, which only its digest says.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A file at one moment. Nobody can change the file and keep the time of change, unlike that of modification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// Of what is at `path` now, be it a link.
    pub(crate) fn at(path: &Path) -> io::Result<Stamp> {
        fs::symlink_metadata(path).map(|metadata| Stamp::of(&metadata))
    }

    /// Of a file that is open, or was found.
    pub(crate) fn of(metadata: &Metadata) -> Stamp {
        Stamp {
            device: metadata.dev(),
            inode: metadata.ino(),
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}
