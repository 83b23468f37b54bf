//! File system metadata that shows whether a file was changed or replaced.

use std::io;
use std::path::Path;

use napreduce_local::world::disk::{Disk, FileStat, Links};

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
    pub(crate) fn at(disk: &dyn Disk, path: &Path) -> io::Result<Stamp> {
        Ok(Stamp::from(disk.stat(path, Links::NotFollowed)?))
    }
}

impl From<FileStat> for Stamp {
    fn from(stat: FileStat) -> Stamp {
        Stamp {
            device: stat.device,
            inode: stat.inode,
            length: stat.bytes,
            modified: stat.modified,
            changed: stat.changed,
        }
    }
}
