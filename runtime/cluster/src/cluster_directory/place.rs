//! Locates a cluster directory, checks that it is private, and defines its layout.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use napreduce_local::world::disk::{Disk, FileKind, Links, RealDisk};
use napreduce_protocol::Secret;

use super::error::ClusterDirectoryError;
use crate::directory_mark::{DirectoryKind, take_directory};
use crate::transport::{read_or_create_secret, read_secret};

const MODE: u32 = 0o700;
/// Files allowed in a directory before its first coordinator: configuration, and workers of other clusters,
/// which have their own marks.
const WELCOME: [&str; 2] = ["napreduce.toml", "workers"];

/// The permissions of missing parents, before the process's mask.
const PARENT_MODE: u32 = 0o777;

/// The directory of a cluster.
#[derive(Debug, Clone)]
pub struct ClusterDirectory {
    path: PathBuf,
    /// The disk that contains it.
    disk: Arc<dyn Disk>,
}

impl ClusterDirectory {
    /// Returns the directory given by the flag, by `NAPREDUCE_DIR`, or else `napreduce` in the user's state
    /// directory.
    pub fn resolve(flag: Option<PathBuf>) -> Result<ClusterDirectory, ClusterDirectoryError> {
        ClusterDirectory::resolve_from(flag, |name| std::env::var_os(name))
    }

    pub(super) fn resolve_from(
        flag: Option<PathBuf>,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<ClusterDirectory, ClusterDirectoryError> {
        let path_in = |name| {
            variable(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let asked = flag.or_else(|| path_in("NAPREDUCE_DIR"));
        // The XDG specification requires ignoring relative paths.
        let of_state = || path_in("XDG_STATE_HOME").filter(|path| path.is_absolute());
        let of_home = || path_in("HOME").map(|home| home.join(".local/state"));
        let by_default = || {
            of_state()
                .or_else(of_home)
                .map(|state| state.join("napreduce"))
        };
        let path = asked
            .or_else(by_default)
            .ok_or(ClusterDirectoryError::Nowhere)?;
        let absolute = std::path::absolute(&path);
        let path = absolute.map_err(ClusterDirectoryError::io("find cluster directory", path))?;
        Ok(ClusterDirectory::on_disk(Arc::new(RealDisk), path))
    }

    /// Returns the directory at an absolute path of a disk.
    pub fn on_disk(disk: Arc<dyn Disk>, path: PathBuf) -> ClusterDirectory {
        ClusterDirectory { path, disk }
    }

    /// Creates the directory and its secret unless they exist. Fails if the directory contains foreign files.
    pub fn create(&self) -> Result<Secret, ClusterDirectoryError> {
        let missing = self.missing_parents();
        if let Some(parent) = self.path.parent() {
            self.disk
                .make_directories(parent, PARENT_MODE)
                .map_err(ClusterDirectoryError::io("make directory", parent))?;
        }
        match self.disk.make_directory(&self.path, MODE) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.close_if_empty()?,
            Err(error) => {
                return Err(ClusterDirectoryError::io(
                    "make cluster directory",
                    &self.path,
                )(error));
            }
        }
        self.check()?;
        for directory in missing.iter().chain([&self.path]) {
            self.sync_entry(directory)?;
        }
        // Versions without marks left a secret.
        let made_before = || read_secret(&*self.disk, &self.secret_file()).is_ok();
        take_directory(
            &*self.disk,
            &self.path,
            DirectoryKind::Cluster,
            |name| !WELCOME.contains(&name),
            made_before,
        )?;
        Ok(read_or_create_secret(&*self.disk, &self.secret_file())?)
    }

    /// Returns the directories above that do not exist.
    fn missing_parents(&self) -> Vec<PathBuf> {
        let mut missing = Vec::new();
        for parent in self.path.ancestors().skip(1) {
            if self.disk.is_directory(parent) {
                break;
            }
            missing.push(parent.to_owned());
        }
        missing
    }

    /// Makes the entry of a directory survive a power loss: jobs that were accepted are lost with it. A directory above
    /// that this user may not read is left to the system.
    fn sync_entry(&self, directory: &Path) -> Result<(), ClusterDirectoryError> {
        match self.disk.sync_parent(directory) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            synced => synced.map_err(ClusterDirectoryError::io(
                "sync the directory above",
                directory,
            )),
        }
    }

    /// Reads the cluster's secret.
    pub fn secret(&self) -> Result<Secret, ClusterDirectoryError> {
        self.check()?;
        Ok(read_secret(&*self.disk, &self.secret_file())?)
    }

    /// Makes an empty directory of this user private, such as one created with `mkdir`.
    fn close_if_empty(&self) -> Result<(), ClusterDirectoryError> {
        let found = self.disk.stat(&self.path, Links::Followed);
        let found = found.map_err(ClusterDirectoryError::io(
            "inspect cluster directory",
            &self.path,
        ))?;
        // A foreign owner is reported by the check, as the more helpful error.
        if found.owner != rustix::process::geteuid().as_raw() {
            return Ok(());
        }
        let names = self.disk.list(&self.path);
        let names = names.map_err(ClusterDirectoryError::io(
            "read cluster directory",
            &self.path,
        ))?;
        if names.is_empty() {
            let closed = self.disk.set_mode(&self.path, MODE);
            closed.map_err(ClusterDirectoryError::io(
                "restrict access to cluster directory",
                &self.path,
            ))?;
        }
        Ok(())
    }

    /// Fails if the directory belongs to another user or others have access.
    pub fn check(&self) -> Result<(), ClusterDirectoryError> {
        let path = self.path.clone();
        let user = rustix::process::geteuid().as_raw();
        let found = match self.disk.stat(&path, Links::Followed) {
            Ok(found) if found.kind == FileKind::Directory => found,
            Ok(_) => {
                return Err(ClusterDirectoryError::io("use", path)(
                    io::ErrorKind::NotADirectory.into(),
                ));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(ClusterDirectoryError::Missing { path });
            }
            Err(error) => {
                return Err(match self.owner_of_closed_parent(user) {
                    Some(owner) => ClusterDirectoryError::OfAnother { path, owner, user },
                    None => ClusterDirectoryError::io("inspect cluster directory", path)(error),
                });
            }
        };
        if found.owner != user {
            return Err(ClusterDirectoryError::OfAnother {
                path,
                owner: found.owner,
                user,
            });
        }
        let mode = found.mode;
        if mode & 0o077 != 0 {
            return Err(ClusterDirectoryError::Exposed { path, mode });
        }
        Ok(())
    }

    /// Returns the owner of the parent directory if that is another user who has closed it.
    fn owner_of_closed_parent(&self, user: u32) -> Option<u32> {
        let seen = self
            .path
            .ancestors()
            .skip(1)
            .find_map(|parent| self.disk.stat(parent, Links::Followed).ok())?;
        let is_closed = seen.owner != user && seen.mode & 0o001 == 0;
        is_closed.then_some(seen.owner)
    }

    /// The disk that contains it.
    pub(crate) fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of the secret.
    pub fn secret_file(&self) -> PathBuf {
        self.path.join("secret")
    }

    /// The path of the coordinator's record.
    pub fn coordinator_file(&self) -> PathBuf {
        self.path.join("coordinator.json")
    }

    /// The path of the coordinator's lock file.
    pub(super) fn coordinator_lock_file(&self) -> PathBuf {
        self.path.join("coordinator.lock")
    }

    /// The path of the lock file of `nap up`.
    pub(super) fn up_lock_file(&self) -> PathBuf {
        self.path.join("up.lock")
    }

    /// The directory of the coordinator's journal, snapshots, history and uploaded files.
    pub fn coordinator_directory(&self) -> PathBuf {
        self.path.join("coordinator")
    }

    /// The directory of the named worker.
    pub fn worker_directory(&self, name: &str) -> PathBuf {
        self.path.join("workers").join(name)
    }
}
