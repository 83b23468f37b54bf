//! The files of this machine.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use napreduce_protocol::{open_named, open_regular_with};

use super::{Disk, DiskFile, FileKind, FileLock, FileStat, HeldLock, Links, Opening};
use crate::locked_file::{LockedFile, lock};

/// The files of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

#[derive(Debug)]
struct RealFile {
    file: File,
    is_locked: AtomicBool,
}

impl RealFile {
    fn boxed(file: File) -> Box<dyn DiskFile> {
        Box::new(RealFile {
            file,
            is_locked: AtomicBool::new(false),
        })
    }
}

impl Drop for RealFile {
    fn drop(&mut self) {
        if self.is_locked.load(Ordering::Relaxed) {
            // A child process that another thread has just forked shares the open file for a moment.
            let _ = self.file.unlock();
        }
    }
}

impl From<&Metadata> for FileStat {
    fn from(metadata: &Metadata) -> FileStat {
        let kind = if metadata.is_file() {
            FileKind::File
        } else if metadata.is_dir() {
            FileKind::Directory
        } else {
            FileKind::Other
        };
        FileStat {
            kind,
            bytes: metadata.len(),
            device: metadata.dev(),
            inode: metadata.ino(),
            owner: metadata.uid(),
            mode: metadata.mode() & 0o7777,
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl Disk for RealDisk {
    fn open(&self, path: &Path, opening: Opening) -> io::Result<Box<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        match opening {
            Opening::Read => options.read(true),
            Opening::ReadLinked => return Ok(RealFile::boxed(open_named(path)?)),
            Opening::Change => options.read(true).write(true),
            Opening::CreateOrChange { mode } => options
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(mode),
            Opening::CreateNew { mode } => {
                options.write(true).create_new(true).mode(mode);
                return Ok(RealFile::boxed(options.open(path)?));
            }
            Opening::CreateOrEmpty { mode } => {
                options.write(true).create(true).truncate(true).mode(mode);
                return Ok(RealFile::boxed(options.open(path)?));
            }
        };
        let file = open_regular_with(&options, path)?;
        Ok(RealFile::boxed(file))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(directory)? {
            names.push(entry?.file_name());
        }
        Ok(names)
    }

    fn stat(&self, path: &Path, links: Links) -> io::Result<FileStat> {
        let metadata = match links {
            Links::Followed => fs::metadata(path)?,
            Links::NotFollowed => fs::symlink_metadata(path)?,
        };
        Ok(FileStat::from(&metadata))
    }

    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        fs::set_permissions(path, Permissions::from_mode(mode))
    }

    fn make_directory(&self, path: &Path, mode: u32) -> io::Result<()> {
        DirBuilder::new().mode(mode).create(path)
    }

    fn make_directories(&self, path: &Path, mode: u32) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(mode).create(path)
    }

    fn link(&self, file: &Path, name: &Path) -> io::Result<()> {
        fs::hard_link(file, name)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        File::open(directory)?.sync_all()
    }

    fn lock_directory(&self, directory: &Path) -> io::Result<Box<dyn HeldLock>> {
        let directory = File::open(directory)?;
        Ok(Box::new(lock(directory)?))
    }
}

impl HeldLock for LockedFile {}

impl DiskFile for RealFile {
    fn stat(&self) -> io::Result<FileStat> {
        Ok(FileStat::from(&self.file.metadata()?))
    }

    fn set_mode(&self, mode: u32) -> io::Result<()> {
        self.file.set_permissions(Permissions::from_mode(mode))
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn lock(&self) -> io::Result<FileLock> {
        match self.file.try_lock() {
            Ok(()) => {
                self.is_locked.store(true, Ordering::Relaxed);
                Ok(FileLock::Taken)
            }
            Err(TryLockError::WouldBlock) => Ok(FileLock::HeldBy(holder_of(&self.file))),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl Read for RealFile {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.file.read(into)
    }

    fn read_to_end(&mut self, into: &mut Vec<u8>) -> io::Result<usize> {
        self.file.read_to_end(into)
    }
}

impl Write for RealFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for RealFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// Returns the process that has locked a file, if the kernel lists it.
fn holder_of(file: &File) -> Option<u32> {
    let inode = format!(":{}", file.metadata().ok()?.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    for line in locks.lines() {
        // As in `7: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF`.
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [_, "FLOCK", _, "WRITE", process, place, ..] = words[..]
            && place.ends_with(&inode)
        {
            return process.parse().ok();
        }
    }
    None
}
