//! The files of a daemon: those of this machine, or in simulations those of [`SimDisk`], which loses what was not
//! synced when its machine loses power.
//!
//! The traits have the calls on which durability rests, so that a simulation can fail each of them, tear it or end the
//! machine after it.

mod real;
#[cfg(feature = "simulated")]
mod simulated;
#[cfg(test)]
mod tests;
#[cfg(feature = "simulated")]
mod unsynced;

use std::ffi::OsString;
use std::fmt::Debug;
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use napreduce_protocol::read_bounded;

pub use real::RealDisk;
#[cfg(feature = "simulated")]
pub use simulated::{CallFault, FaultRates, SimDisk, Survivors};
#[cfg(feature = "simulated")]
pub use unsynced::{FileCall, UnsyncedFiles};

/// How [`Disk::open`] opens a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// Reads an existing file.
    Read,
    /// Reads an existing file, which may be behind symbolic links.
    ReadLinked,
    /// Reads and writes an existing file.
    Change,
    /// Reads and writes a file, and creates it if it is missing.
    CreateOrChange {
        /// The permissions of a new file, before the process's mask.
        mode: u32,
    },
    /// Writes a file that must not exist yet.
    CreateNew {
        /// The permissions of the file, before the process's mask.
        mode: u32,
    },
    /// Writes a file, which is created or emptied.
    CreateOrEmpty {
        /// The permissions of a new file, before the process's mask.
        mode: u32,
    },
}

/// Whether a symbolic link at the end of a path counts, or what it leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// The target of the link.
    Followed,
    /// The link itself.
    NotFollowed,
}

/// The kind of what a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, a pipe, a socket or a device.
    Other,
}

/// The properties of a file, directory or link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStat {
    /// Its kind.
    pub kind: FileKind,
    /// The length of its content.
    pub bytes: u64,
    /// The file system that contains it.
    pub device: u64,
    /// Its number in the file system.
    pub inode: u64,
    /// The user who owns it.
    pub owner: u32,
    /// Its permissions.
    pub mode: u32,
    /// When its content last changed: seconds since 1970, and nanoseconds.
    pub modified: (i64, i64),
    /// When its content or properties last changed. Users cannot set this time.
    pub changed: (i64, i64),
}

/// The result of [`DiskFile::lock`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileLock {
    /// Locked until the file is closed.
    Taken,
    /// Another process holds the lock; its number, if the kernel lists it.
    HeldBy(Option<u32>),
}

/// The files of a machine.
///
/// Every method fails with errors of the system.
#[allow(clippy::missing_errors_doc)]
pub trait Disk: Debug + Send + Sync {
    /// Opens a file. To be read or changed, it must be a regular one: no pipe, device, socket, directory or symbolic link;
    /// others are refused without waiting for them.
    fn open(&self, path: &Path, opening: Opening) -> io::Result<Box<dyn DiskFile>>;

    /// Returns the names in a directory, in any order.
    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>>;

    /// Returns the properties of a file, directory or link.
    fn stat(&self, path: &Path, links: Links) -> io::Result<FileStat>;

    /// Sets the permissions of a file or directory.
    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()>;

    /// Creates a directory with these permissions, before the process's mask.
    fn make_directory(&self, path: &Path, mode: u32) -> io::Result<()>;

    /// Creates a directory and its missing parents with these permissions, before the process's mask.
    fn make_directories(&self, path: &Path, mode: u32) -> io::Result<()>;

    /// Adds a name for a file. Fails if the name exists.
    fn link(&self, file: &Path, name: &Path) -> io::Result<()>;

    /// Renames a file, replacing a file at the target.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Makes the entries of a directory survive a power loss.
    fn sync_directory(&self, directory: &Path) -> io::Result<()>;

    /// Locks a directory, and waits until other processes release it.
    fn lock_directory(&self, directory: &Path) -> io::Result<Box<dyn HeldLock>>;
}

/// A lock that is held until this value is dropped, or the process ends.
pub trait HeldLock: Debug + Send + Sync {}

/// An open file.
#[allow(clippy::missing_errors_doc)]
pub trait DiskFile: Read + Write + Seek + Debug + Send + Sync {
    /// Returns the properties of the file.
    fn stat(&self) -> io::Result<FileStat>;

    /// Sets the permissions of the file.
    fn set_mode(&self, mode: u32) -> io::Result<()>;

    /// Cuts the file, or extends it by zeros.
    fn set_len(&self, bytes: u64) -> io::Result<()>;

    /// Makes content and length survive a power loss. A new file also needs [`Disk::sync_directory`].
    fn sync_data(&self) -> io::Result<()>;

    /// Locks the file without waiting. The lock lasts until the file is closed, also by the end of the process.
    fn lock(&self) -> io::Result<FileLock>;
}

impl dyn Disk + '_ {
    /// Makes the entry of a file or directory survive a power loss.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn sync_parent(&self, path: &Path) -> io::Result<()> {
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        self.sync_directory(parent)
    }

    /// Returns whether a path, which may contain symbolic links, leads to a directory.
    #[must_use]
    pub fn is_directory(&self, path: &Path) -> bool {
        let found = self.stat(path, Links::Followed);
        found.is_ok_and(|stat| stat.kind == FileKind::Directory)
    }

    /// Reads the whole of a regular file of at most `bytes_max` bytes.
    ///
    /// # Errors
    /// Errors of the system, and [`io::ErrorKind::InvalidInput`] for a longer file.
    pub fn read(&self, path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
        let file = self.open(path, Opening::Read)?;
        read_bounded(file, bytes_max)
    }

    /// Replaces a file atomically: writes and syncs the content under another name in the directory, renames it, and
    /// syncs the directory.
    ///
    /// # Errors
    /// Errors of the system. The file then has its old or its new content.
    pub fn replace(&self, path: &Path, replacement: &Replacement<'_>) -> io::Result<()> {
        let mode = replacement.mode;
        let mut file = self.open(replacement.unfinished, Opening::CreateOrEmpty { mode })?;
        file.write_all(replacement.content)?;
        file.sync_data()?;
        drop(file);
        self.rename(replacement.unfinished, path)?;
        self.sync_parent(path)
    }
}

/// The new content of a file.
#[derive(Debug, Clone, Copy)]
pub struct Replacement<'a> {
    /// The name under which it is written, in the same directory.
    pub unfinished: &'a Path,
    /// The new content.
    pub content: &'a [u8],
    /// The permissions of the file, before the process's mask.
    pub mode: u32,
}
