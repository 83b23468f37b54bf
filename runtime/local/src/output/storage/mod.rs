//! The file system calls of claim and commit, all beneath the output directory.
//!
//! Calls follow no symbolic links. They handle repeated answers: over NFS a completed rename may report
//! `ENOENT`. In tests a script makes any call fail, or ends the run at it.

mod beneath;
mod error;
#[cfg(any(test, feature = "testing"))]
pub(super) mod script;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use beneath::open_beneath;
pub(super) use error::StorageError;
use napreduce_protocol::IoResult;
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, fsync, mkdirat, open,
    renameat, statat, unlinkat, utimensat,
};

use crate::locked_file::{Locking, try_lock_where_supported};
use crate::world::World;
#[cfg(feature = "simulated")]
use crate::world::disk::FileCall;

/// The file systems of this machine; in tests, with injected faults.
#[derive(Debug, Clone)]
pub struct Disk {
    world: World,
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

#[cfg(feature = "simulated")]
impl Call<'_> {
    /// Returns the call with the whole paths of what is beneath an output directory.
    fn beneath(self, root: &Path) -> FileCall {
        let at = |path: &Path| {
            let whole = root.join(path);
            whole.components().collect::<PathBuf>()
        };
        match self {
            // An output directory that is removed stays removed.
            Call::Look | Call::Touch | Call::Lock | Call::RemoveRoot(_) => FileCall::Look,
            Call::MakeRoot(path) | Call::MakeDirectory(path) => FileCall::MakeDirectory(at(path)),
            Call::Create(path) => FileCall::Create(at(path)),
            Call::Write(path, _) => FileCall::Write(at(path)),
            Call::SyncFile(path) => FileCall::SyncFile(at(path)),
            Call::SyncDirectory(path) | Call::SyncRoot(path) => FileCall::SyncDirectory(at(path)),
            Call::Rename(from, to) => FileCall::Rename {
                from: at(from),
                to: at(to),
            },
            Call::RemoveFile(path) => FileCall::RemoveFile(at(path)),
            Call::RemoveDirectory(path) => FileCall::RemoveDirectory(at(path)),
            Call::RemoveTree(path) => FileCall::RemoveTree(at(path)),
        }
    }
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

impl Default for Disk {
    fn default() -> Disk {
        Disk::new(World::real())
    }
}

impl Disk {
    /// Returns the file systems as a process of this world uses them.
    pub fn new(world: World) -> Disk {
        Disk {
            world,
            #[cfg(any(test, feature = "testing"))]
            script: None,
        }
    }

    /// Returns the world of the process that uses it.
    pub(super) fn world(&self) -> &World {
        &self.world
    }

    #[cfg_attr(
        not(any(test, feature = "testing")),
        expect(clippy::unused_self, reason = "tests have a script there")
    )]
    fn call<T>(
        &self,
        root: &Path,
        call: Call<'_>,
        real: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        #[cfg(any(test, feature = "testing"))]
        if let Some(script) = &self.script {
            return script.run(call, real);
        }
        #[cfg(feature = "simulated")]
        if let Some(outputs) = &self.world.outputs {
            return outputs.carry_out(call.beneath(root), real);
        }
        let _ = (root, call);
        real()
    }

    /// Makes a call on a directory that is not open.
    fn root_call<T>(&self, call: Call<'_>, real: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.call(Path::new(""), call, real)
    }

    /// Syncs; if a script is set, only records the call.
    fn sync(
        &self,
        root: &Path,
        call: Call<'_>,
        real: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        #[cfg(any(test, feature = "testing"))]
        if self.script.is_some() {
            return self.call(root, call, || Ok(()));
        }
        self.call(root, call, real)
    }

    /// Returns whether the directory exists; fails if the path is not a directory.
    pub(super) fn has_root(&self, path: &Path) -> io::Result<bool> {
        match look_twice(|| self.root_call(Call::Look, || fs::metadata(path)))? {
            Some(found) if !found.is_dir() => Err(io::ErrorKind::NotADirectory.into()),
            found => Ok(found.is_some()),
        }
    }

    /// Creates an output directory or a parent of one.
    pub(super) fn make_root(&self, path: &Path) -> io::Result<()> {
        self.root_call(Call::MakeRoot(path), || fs::create_dir(path))
    }

    pub(super) fn remove_root(&self, path: &Path) -> io::Result<()> {
        self.root_call(Call::RemoveRoot(path), || fs::remove_dir(path))
    }

    /// Syncs a directory above an output directory.
    pub(super) fn sync_root(&self, path: &Path) -> io::Result<()> {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        self.sync(Path::new(""), Call::SyncRoot(path), || {
            File::open(path)?.sync_all()
        })
    }

    /// Opens an output directory. Its path may contain symbolic links; paths beneath it may not. Syncs take
    /// effect only if it is `durable`.
    pub(super) fn open(&self, path: &Path, durable: bool) -> Result<Storage, StorageError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = self.root_call(Call::Look, || Ok(open(path, flags, Mode::empty())?));
        let failed = |error| StorageError::new("open", path.display().to_string(), error);
        let root = opened.map_err(failed)?;
        Ok(Storage {
            disk: self.clone(),
            root,
            path: path.to_owned(),
            durable,
        })
    }

    /// Opens an output directory in which nothing is synced.
    pub(super) fn open_unsynced(&self, path: &Path) -> Result<Storage, StorageError> {
        let durable = false;
        self.open(path, durable)
    }
}

impl Storage {
    /// The output directory.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the world of this process.
    pub(super) fn world(&self) -> &World {
        &self.disk.world
    }

    /// Returns the file systems on which it was opened.
    pub(super) fn disk(&self) -> Disk {
        self.disk.clone()
    }

    /// Returns the path of a file in it for messages.
    pub(super) fn shown(&self, path: &Path) -> String {
        let whole = if path.as_os_str().is_empty() {
            self.path.clone()
        } else {
            self.path.join(path)
        };
        whole.display().to_string()
    }

    /// Returns the error of an operation on a file in it.
    pub(super) fn failure(
        &self,
        verb: &'static str,
        path: &Path,
        error: io::Error,
    ) -> StorageError {
        StorageError::new(verb, self.shown(path), error)
    }

    fn moving(&self, from: &Path, to: &Path, error: io::Error) -> StorageError {
        StorageError::new(
            "move",
            format!("{} to {}", self.shown(from), self.shown(to)),
            error,
        )
    }

    /// Makes one call.
    fn on_disk<T>(&self, call: Call<'_>, real: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.disk.call(&self.path, call, real)
    }

    /// Makes one call; an error has the operation and the path.
    fn call<T>(
        &self,
        verb: &'static str,
        path: &Path,
        call: Call<'_>,
        real: impl FnOnce() -> io::Result<T>,
    ) -> Result<T, StorageError> {
        self.on_disk(call, real)
            .map_err(|error| self.failure(verb, path, error))
    }

    /// Returns the directory's inode.
    pub(super) fn identity(&self) -> Result<u64, StorageError> {
        self.call("open", Path::new(""), Call::Look, || {
            let inode = rustix::fs::fstat(&self.root)?.st_ino;
            // A journal contains this number in decimal, and every run of a seed must have a journal of the same length.
            #[cfg(feature = "simulated")]
            let inode = inode % 1_000_000_000_000 + 1_000_000_000_000;
            Ok(inode)
        })
    }

    /// Returns whether the path still leads to this directory.
    pub(super) fn is_there(&self) -> Result<bool, StorageError> {
        let current = self.disk.open_unsynced(&self.path)?;
        Ok(current.identity()? == self.identity()?)
    }

    /// Returns whether the directory was removed. An unmounted directory is not removed: it is still linked.
    pub(super) fn is_removed(&self) -> bool {
        let links = self.on_disk(Call::Look, || Ok(rustix::fs::fstat(&self.root)?.st_nlink));
        links.is_ok_and(|links| links == 0)
    }

    pub(super) fn names(&self, directory: &Path) -> Result<Vec<OsString>, StorageError> {
        self.call("list", directory, Call::Look, || {
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
    pub(super) fn find(&self, path: &Path) -> Result<Option<Found>, StorageError> {
        let look = || {
            let stat = self.within(path, |parent, name| {
                statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)
            })?;
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
        let found = look_twice(|| self.on_disk(Call::Look, look));
        found.map_err(|error| self.failure("find", path, error))
    }

    /// Reads a small file; `None` if it does not exist.
    pub(super) fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, StorageError> {
        let read = || {
            let mut bytes = Vec::new();
            let file = open_beneath(
                self.root.as_fd(),
                path,
                OFlags::RDONLY | OFlags::NONBLOCK,
                Mode::empty(),
            )?;
            File::from(file).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let text = look_twice(|| self.on_disk(Call::Look, read));
        text.map_err(|error| self.failure("read", path, error))
    }

    /// Creates a file, writes and syncs it. Fails if it exists.
    pub(super) fn write_new(&self, path: &Path, bytes: &[u8]) -> Result<(), StorageError> {
        let file = self.call("write", path, Call::Create(path), || {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY;
            let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
            Ok(File::from(open_beneath(
                self.root.as_fd(),
                path,
                flags,
                mode,
            )?))
        })?;
        self.call("write", path, Call::Write(path, bytes), || {
            (&file).write_all(bytes)
        })?;
        self.sync(path, Call::SyncFile(path), || file.sync_all())
    }

    /// Replaces a file atomically and syncs its directory.
    pub(super) fn replace(&self, path: &Path, bytes: &[u8]) -> Result<(), StorageError> {
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(".unfinished");
        let unfinished = Path::new(&unfinished);
        self.remove_file(unfinished)?;
        self.write_new(unfinished, bytes)?;
        self.rename(unfinished, path)?;
        self.sync_directory(path.parent().unwrap_or(Path::new("")))
    }

    /// Renames a file or directory, replacing a file at the target.
    pub(super) fn rename(&self, from: &Path, to: &Path) -> Result<(), StorageError> {
        let Some(found) = self.find(from)? else {
            return Err(self.moving(from, to, io::ErrorKind::NotFound.into()));
        };
        self.rename_known(from, to, found)
    }

    /// Renames a known entry. "Not found" may be the answer to a request that the network repeated after it
    /// was carried out; then the target is the known entry.
    pub(super) fn rename_known(
        &self,
        from: &Path,
        to: &Path,
        known: Found,
    ) -> Result<(), StorageError> {
        let renamed = self.on_disk(Call::Rename(from, to), || {
            let source = self.parent(from)?;
            let target = self.parent(to)?;
            Ok(renameat(
                source.as_fd(),
                name_of(from)?,
                target.as_fd(),
                name_of(to)?,
            )?)
        });
        match renamed {
            Err(error) if error.kind() == io::ErrorKind::NotFound => match self.find(to)? {
                Some(found) if found.is(known) => Ok(()),
                _ => Err(self.moving(from, to, error)),
            },
            renamed => renamed.map_err(|error| self.moving(from, to, error)),
        }
    }

    pub(super) fn make_directory(&self, path: &Path) -> Result<(), StorageError> {
        let mode = Mode::from_raw_mode(0o777);
        self.call("create", path, Call::MakeDirectory(path), || {
            self.within(path, |parent, name| mkdirat(parent, name, mode))
        })
    }

    /// Removes a file. Succeeds if there is none; a directory stays.
    pub(super) fn remove_file(&self, path: &Path) -> Result<(), StorageError> {
        let removed = self.on_disk(Call::RemoveFile(path), || {
            self.within(path, |parent, name| {
                unlinkat(parent, name, AtFlags::empty())
            })
        });
        match removed {
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::IsADirectory
                ) =>
            {
                Ok(())
            }
            removed => removed.map_err(|error| self.failure("remove", path, error)),
        }
    }

    /// Removes an empty directory.
    pub(super) fn remove_directory(&self, path: &Path) -> Result<(), StorageError> {
        self.call("remove", path, Call::RemoveDirectory(path), || {
            self.within(path, |parent, name| {
                unlinkat(parent, name, AtFlags::REMOVEDIR)
            })
        })
    }

    /// Removes an entry of the output directory recursively. Succeeds if there is none. Links are not
    /// followed.
    pub(super) fn remove_tree(&self, name: &Path) -> Result<(), StorageError> {
        let removed = self.on_disk(Call::RemoveTree(name), || {
            fs::remove_dir_all(self.path.join(name))
        });
        removed
            .if_there()
            .map(drop)
            .map_err(|error| self.failure("remove", name, error))
    }

    /// Syncs the entries of a directory, if syncing is enabled.
    pub(super) fn sync_directory(&self, path: &Path) -> Result<(), StorageError> {
        self.sync(path, Call::SyncDirectory(path), || {
            Ok(fsync(self.directory(path)?)?)
        })
    }

    fn sync(
        &self,
        path: &Path,
        call: Call<'_>,
        real: impl FnOnce() -> io::Result<()>,
    ) -> Result<(), StorageError> {
        if !self.durable {
            return Ok(());
        }
        self.disk
            .sync(&self.path, call, real)
            .map_err(|error| self.failure("sync", path, error))
    }

    /// Sets a file's access and modification times to the current time of the storage.
    pub(super) fn touch(&self, path: &Path) -> Result<(), StorageError> {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_NOW,
        };
        let times = Timestamps {
            last_access: now,
            last_modification: now,
        };
        self.call("touch", path, Call::Touch, || {
            self.within(path, |parent, name| {
                utimensat(parent, name, &times, AtFlags::SYMLINK_NOFOLLOW)
            })
        })
    }

    /// Locks a directory, unless another process holds the lock.
    pub(super) fn lock(&self, directory: &Path) -> Result<Locking, StorageError> {
        self.call("lock", directory, Call::Lock, || {
            try_lock_where_supported(File::from(self.directory(directory)?))
        })
    }

    fn directory(&self, path: &Path) -> io::Result<OwnedFd> {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        open_beneath(
            self.root.as_fd(),
            path,
            OFlags::RDONLY | OFlags::DIRECTORY,
            Mode::empty(),
        )
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
    path.file_name()
        .ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// Looks up twice before reporting absence, since absence can end or begin a job.
fn look_twice<T>(look: impl Fn() -> io::Result<T>) -> io::Result<Option<T>> {
    match look().if_there()? {
        None => look().if_there(),
        found => Ok(found),
    }
}
