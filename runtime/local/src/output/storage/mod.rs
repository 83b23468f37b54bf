//! The calls that claim and commit make of a file system: all of them, in one place, beneath the
//! output directory.
//!
//! Owns following no symbolic link, what is synced, and that a repeated answer is understood: over NFS a
//! rename that was done may be said to have found nothing. Does not own the order of the calls. In tests a
//! script makes any of them fail, or the last one that is made.

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

/// The file systems of this machine; in tests, with what goes wrong there.
#[derive(Debug, Clone, Default)]
pub struct Disk {
    #[cfg(any(test, feature = "testing"))]
    script: Option<std::sync::Arc<script::DiskScript>>,
}

/// One call, as a script is told of it. Paths are as the caller gave them.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(
    not(any(test, feature = "testing")),
    expect(dead_code, reason = "only a script reads what is in it")
)]
pub(super) enum Call<'a> {
    /// Opens, lists, reads or stats; changes nothing.
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

/// What is there under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) is_file: bool,
    pub(super) is_directory: bool,
    pub(super) bytes: u64,
    pub(super) device: u64,
    pub(super) inode: u64,
    /// When it was changed last by the clock of the storage, in seconds.
    pub(super) modified: i64,
}

/// An output directory, open.
#[derive(Debug)]
pub(super) struct Storage {
    disk: Disk,
    root: OwnedFd,
    path: PathBuf,
    durable: bool,
}

impl Found {
    /// Whether it is the same file, and as long, or the same directory.
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

    /// A call that a script has remembered costs tests no time.
    fn sync(&self, call: Call<'_>, real: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        #[cfg(any(test, feature = "testing"))]
        if self.script.is_some() {
            return self.call(call, || Ok(()));
        }
        self.call(call, real)
    }

    /// Whether there is a directory; something else in its place is an error.
    pub(super) fn has_root(&self, path: &Path) -> io::Result<bool> {
        match look_twice(|| self.call(Call::Look, || fs::metadata(path)))? {
            Some(found) if !found.is_dir() => Err(io::ErrorKind::NotADirectory.into()),
            found => Ok(found.is_some()),
        }
    }

    /// Makes a directory above or at an output directory.
    pub(super) fn make_root(&self, path: &Path) -> io::Result<()> {
        self.call(Call::MakeRoot(path), || fs::create_dir(path))
    }

    pub(super) fn remove_root(&self, path: &Path) -> io::Result<()> {
        self.call(Call::RemoveRoot(path), || fs::remove_dir(path))
    }

    /// Forces the entries of a directory above an output directory to the disk.
    pub(super) fn sync_root(&self, path: &Path) -> io::Result<()> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        self.sync(Call::SyncRoot(path), || File::open(path)?.sync_all())
    }

    /// Opens an output directory. It may be reached through symbolic links; nothing beneath it is. If it is
    /// `durable`, what is to be synced is.
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

    /// What it is on.
    pub(super) fn disk(&self) -> Disk {
        self.disk.clone()
    }

    /// As people are told of a file in it.
    pub(super) fn shown(&self, path: &Path) -> String {
        self.path.join(path).display().to_string()
    }

    /// Which directory it is, whatever its path is on.
    pub(super) fn identity(&self) -> io::Result<u64> {
        self.disk.call(Call::Look, || Ok(rustix::fs::fstat(&self.root)?.st_ino))
    }

    /// Whether its path still leads to it.
    pub(super) fn is_there(&self) -> io::Result<bool> {
        Ok(self.disk.open(&self.path, false)?.identity()? == self.identity()?)
    }

    /// Whether it was removed, which is more than not being found: what is not mounted is still linked where
    /// it is.
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

    /// What is there, which may be a symbolic link; nothing is `None`.
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

    /// The whole of a small file; `None` when there is none.
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

    /// Writes a file that is not there yet, and syncs it.
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

    /// Puts a file into place whole, over an older one; its directory is synced.
    pub(super) fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(".unfinished");
        let unfinished = Path::new(&unfinished);
        self.remove_file(unfinished)?;
        self.write_new(unfinished, bytes)?;
        self.rename(unfinished, path)?;
        self.sync_directory(path.parent().unwrap_or(Path::new("")))
    }

    /// Moves a file or directory, over a file that is in the way.
    pub(super) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let found = self.find(from)?.ok_or(io::ErrorKind::NotFound)?;
        self.rename_known(from, to, found)
    }

    /// The same for what is known. That nothing was found may be the answer to a request that was repeated by
    /// the network after it had been carried out: then the target is what was to be moved.
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

    /// Removes a file; fine if there is none, and a directory stays.
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

    /// Removes an entry of the output directory with everything in it; fine if there is none. Links in it are
    /// not followed.
    pub(super) fn remove_tree(&self, name: &Path) -> io::Result<()> {
        let removed = self.disk.call(Call::RemoveTree(name), || fs::remove_dir_all(self.path.join(name)));
        removed.if_there().map(drop)
    }

    /// Forces the entries of a directory to the disk, if that is wanted.
    pub(super) fn sync_directory(&self, path: &Path) -> io::Result<()> {
        match self.durable {
            true => self.disk.sync(Call::SyncDirectory(path), || Ok(fsync(self.directory(path)?)?)),
            false => Ok(()),
        }
    }

    /// Gives a file the present time of the storage's clock.
    pub(super) fn touch(&self, path: &Path) -> io::Result<()> {
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let times = Timestamps { last_access: now, last_modification: now };
        self.disk.call(Call::Touch, || {
            self.within(path, |parent, name| utimensat(parent, name, &times, AtFlags::SYMLINK_NOFOLLOW))
        })
    }

    /// Locks a directory, unless somebody else has.
    pub(super) fn lock(&self, directory: &Path) -> io::Result<Locked> {
        self.disk.call(Call::Lock, || locks::lock(File::from(self.directory(directory)?)))
    }

    fn directory(&self, path: &Path) -> io::Result<OwnedFd> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        open_beneath(self.root.as_fd(), path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
    }

    /// The directory that an entry is in.
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

/// That there is nothing may end a job, or begin one: it is asked for twice before it is believed.
fn look_twice<T>(look: impl Fn() -> io::Result<T>) -> io::Result<Option<T>> {
    match look().if_there()? {
        None => look().if_there(),
        found => Ok(found),
    }
}
