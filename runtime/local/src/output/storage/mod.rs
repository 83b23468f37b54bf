//! The file system calls of claim and commit, all beneath the output directory.
//!
//! Calls follow no symbolic links. They handle repeated answers: over NFS a completed rename may report
//! `ENOENT`. In tests a script makes any call fail, or ends the run at it.

mod beneath;
mod locks;
#[cfg(any(test, feature = "testing"))]
pub(super) mod script;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use beneath::open_beneath;
pub(super) use locks::Locked;
use napreduce_protocol::IoResult;
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, fsync, mkdirat, open, renameat,
    statat, unlinkat, utimensat,
};

/// The file systems of this machine; in tests, with injected faults.
#[derive(Debug, Clone, Default)]
pub struct Disk {
    #[cfg(any(test, feature = "testing"))]
    script: Option<std::sync::Arc<script::DiskScript>>,
}

/// One call, as passed to a script. Paths are as the caller gave them.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(
    not(any(test, feature = "testing")),
    expect(dead_code, reason = "only a script reads what is in it")
)]
pub(super) enum Call<'a> {
    /// Opens, lists, reads or stats without changes.
    Look,
    MakeRoot(&'a Path),
    RemoveRoot(&'a Path),
    MakeDirectory(&'a Path),
    Create(&'a Path),
    Write(&'a Path, &'a [u8]),
    SyncFile(&'a Path),
    SyncDirectory(&'a Path),
    SyncRoot(&'a Path),
    Rename(&'a Path, &'a Path),
    RemoveFile(&'a Path),
    RemoveDirectory(&'a Path),
    RemoveTree(&'a Path),
    Touch,
    Lock,
}

/// The directory entry under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) is_file: bool,
    pub(super) is_directory: bool,
    pub(super) bytes: u64,
    pub(super) device: u64,
    pub(super) inode: u64,
    /// Modification time by the clock of the storage, in seconds.
    pub(super) modified: i64,
}

/// An open output directory.
#[derive(Debug)]
pub(super) struct Storage {
    disk: Disk,
    root: OwnedFd,
    path: PathBuf,
    durable: bool,
}

impl Found {
    /// Returns whether both are the same file with the same length, or the same directory.
    fn is(self, other: Found) -> bool {
        self.inode == other.inode
            && self.is_file == other.is_file
            && (!self.is_file || self.bytes == other.bytes)
    }
}

impl Disk {
    #[cfg_attr(
        not(any(test, feature = "testing")),
        expect(clippy::unused_self, reason = "tests have a script there")
    )]
    fn call<T>(&self, call: Call<'_>, real: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        #[cfg(any(test, feature = "testing"))]
        if let Some(script) = &self.script {
            return script.run(call, real);
        }
        let _ = call;
        real()
    }

    /// Syncs; if a script is set, only records the call.
    fn sync(&self, call: Call<'_>, real: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        #[cfg(any(test, feature = "testing"))]
        if self.script.is_some() {
            return self.call(call, || Ok(()));
        }
        self.call(call, real)
    }

    /// Returns whether the directory exists; fails if the path is not a directory.
    pub(super) fn has_root(&self, path: &Path) -> io::Result<bool> {
        match look_twice(|| self.call(Call::Look, || fs::metadata(path)))? {
            Some(found) if !found.is_dir() => Err(io::ErrorKind::NotADirectory.into()),
            found => Ok(found.is_some()),
        }
    }

    /// Creates an output directory or a parent of one.
    pub(super) fn make_root(&self, path: &Path) -> io::Result<()> {
        self.call(Call::MakeRoot(path), || fs::create_dir(path))
    }

    pub(super) fn remove_root(&self, path: &Path) -> io::Result<()> {
        self.call(Call::RemoveRoot(path), || fs::remove_dir(path))
    }

    /// Syncs a directory above an output directory.
    pub(super) fn sync_root(&self, path: &Path) -> io::Result<()> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        self.sync(Call::SyncRoot(path), || File::open(path)?.sync_all())
    }

    /// Opens an output directory. Its path may contain symbolic links; paths beneath it may not. Syncs take
    /// effect only if it is `durable`.
    pub(super) fn open(&self, path: &Path, durable: bool) -> io::Result<Storage> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = self.call(Call::Look, || Ok(open(path, flags, Mode::empty())?))?;
        Ok(Storage { disk: self.clone(), root, path: path.to_owned(), durable })
    }
}

impl Storage {
    /// The output directory.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the file systems on which it was opened.
    pub(super) fn disk(&self) -> Disk {
        self.disk.clone()
    }

    /// Returns the path of a file in it for messages.
    pub(super) fn shown(&self, path: &Path) -> String {
        self.path.join(path).display().to_string()
    }

    /// Returns the directory's inode.
    pub(super) fn identity(&self) -> io::Result<u64> {
        self.disk.call(Call::Look, || Ok(rustix::fs::fstat(&self.root)?.st_ino))
    }

    /// Returns whether the path still leads to this directory.
    pub(super) fn is_there(&self) -> io::Result<bool> {
        Ok(self.disk.open(&self.path, false)?.identity()? == self.identity()?)
    }

    /// Returns whether the directory was removed. An unmounted directory is not removed: it is still linked.
    pub(super) fn is_removed(&self) -> bool {
        let links = self.disk.call(Call::Look, || Ok(rustix::fs::fstat(&self.root)?.st_nlink));
        links.is_ok_and(|links| links == 0)
    }

    pub(super) fn names(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        self.disk.call(Call::Look, || {
            let mut names = Vec::new();
            for entry in Dir::new(self.directory(directory)?)? {
                let entry = entry?;
                let name = entry.file_name().to_bytes();
                if name != b"." && name != b".." {
                    names.push(OsStr::from_bytes(name).to_owned());
                }
            }
            Ok(names)
        })
    }

    /// Returns the entry at a path, which may be a symbolic link; `None` if there is none.
    pub(super) fn find(&self, path: &Path) -> io::Result<Option<Found>> {
        let look = || {
            let stat = self.within(path, |parent, name| statat(parent, name, AtFlags::SYMLINK_NOFOLLOW))?;
            let kind = FileType::from_raw_mode(stat.st_mode);
            Ok(Found {
                is_file: kind == FileType::RegularFile,
                is_directory: kind == FileType::Directory,
                bytes: u64::try_from(stat.st_size).unwrap_or(0),
                device: stat.st_dev,
                inode: stat.st_ino,
                modified: stat.st_mtime,
            })
        };
        look_twice(|| self.disk.call(Call::Look, look))
    }

    /// Reads a small file; `None` if it does not exist.
    pub(super) fn read(&self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        let read = || {
            let mut bytes = Vec::new();
            let file =
                open_beneath(self.root.as_fd(), path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())?;
            File::from(file).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        look_twice(|| self.disk.call(Call::Look, read))
    }

    /// Creates a file, writes and syncs it. Fails if it exists.
    pub(super) fn write_new(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let file = self.disk.call(Call::Create(path), || {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY;
            let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
            Ok(File::from(open_beneath(self.root.as_fd(), path, flags, mode)?))
        })?;
        self.disk.call(Call::Write(path, bytes), || (&file).write_all(bytes))?;
        match self.durable {
            true => self.disk.sync(Call::SyncFile(path), || file.sync_all()),
            false => Ok(()),
        }
    }

    /// Replaces a file atomically and syncs its directory.
    pub(super) fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(".unfinished");
        let unfinished = Path::new(&unfinished);
        self.remove_file(unfinished)?;
        self.write_new(unfinished, bytes)?;
        self.rename(unfinished, path)?;
        self.sync_directory(path.parent().unwrap_or(Path::new("")))
    }

    /// Renames a file or directory, replacing a file at the target.
    pub(super) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let found = self.find(from)?.ok_or(io::ErrorKind::NotFound)?;
        self.rename_known(from, to, found)
    }

    /// Renames a known entry. "Not found" may be the answer to a request that the network repeated after it
    /// was carried out; then the target is the known entry.
    pub(super) fn rename_known(&self, from: &Path, to: &Path, known: Found) -> io::Result<()> {
        let renamed = self.disk.call(Call::Rename(from, to), || {
            let (source, target) = (self.parent(from)?, self.parent(to)?);
            Ok(renameat(source.as_fd(), name_of(from)?, target.as_fd(), name_of(to)?)?)
        });
        match renamed {
            Err(error) if error.kind() == io::ErrorKind::NotFound => match self.find(to)? {
                Some(found) if found.is(known) => Ok(()),
                _ => Err(error),
            },
            renamed => renamed,
        }
    }

    pub(super) fn make_directory(&self, path: &Path) -> io::Result<()> {
        let mode = Mode::from_raw_mode(0o777);
        self.disk
            .call(Call::MakeDirectory(path), || self.within(path, |parent, name| mkdirat(parent, name, mode)))
    }

    /// Removes a file. Succeeds if there is none; a directory stays.
    pub(super) fn remove_file(&self, path: &Path) -> io::Result<()> {
        let removed = self.disk.call(Call::RemoveFile(path), || {
            self.within(path, |parent, name| unlinkat(parent, name, AtFlags::empty()))
        });
        match removed {
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::IsADirectory) => {
                Ok(())
            }
            removed => removed,
        }
    }

    /// Removes an empty directory.
    pub(super) fn remove_directory(&self, path: &Path) -> io::Result<()> {
        self.disk.call(Call::RemoveDirectory(path), || {
            self.within(path, |parent, name| unlinkat(parent, name, AtFlags::REMOVEDIR))
        })
    }

    /// Removes an entry of the output directory recursively. Succeeds if there is none. Links are not
    /// followed.
    pub(super) fn remove_tree(&self, name: &Path) -> io::Result<()> {
        let removed = self.disk.call(Call::RemoveTree(name), || fs::remove_dir_all(self.path.join(name)));
        removed.if_there().map(drop)
    }

    /// Syncs the entries of a directory, if syncing is enabled.
    pub(super) fn sync_directory(&self, path: &Path) -> io::Result<()> {
        match self.durable {
            true => self.disk.sync(Call::SyncDirectory(path), || Ok(fsync(self.directory(path)?)?)),
            false => Ok(()),
        }
    }

    /// Sets a file's access and modification times to the current time of the storage.
    pub(super) fn touch(&self, path: &Path) -> io::Result<()> {
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let times = Timestamps { last_access: now, last_modification: now };
        self.disk.call(Call::Touch, || {
            self.within(path, |parent, name| utimensat(parent, name, &times, AtFlags::SYMLINK_NOFOLLOW))
        })
    }

    /// Locks a directory, unless another process holds the lock.
    pub(super) fn lock(&self, directory: &Path) -> io::Result<Locked> {
        self.disk.call(Call::Lock, || locks::lock(File::from(self.directory(directory)?)))
    }

    fn directory(&self, path: &Path) -> io::Result<OwnedFd> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        open_beneath(self.root.as_fd(), path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
    }

    /// Opens the directory that contains an entry.
    fn parent(&self, path: &Path) -> io::Result<OwnedFd> {
        self.directory(path.parent().unwrap_or(Path::new("")))
    }

    fn within<T>(
        &self,
        path: &Path,
        act: impl FnOnce(std::os::fd::BorrowedFd<'_>, &OsStr) -> rustix::io::Result<T>,
    ) -> io::Result<T> {
        let parent = self.parent(path)?;
        Ok(act(parent.as_fd(), name_of(path)?)?)
    }
}

fn name_of(path: &Path) -> io::Result<&OsStr> {
    path.file_name().ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// Looks up twice before reporting absence, since absence can end or begin a job.
fn look_twice<T>(look: impl Fn() -> io::Result<T>) -> io::Result<Option<T>> {
    match look().if_there()? {
        None => look().if_there(),
        found => Ok(found),
    }
}
