//! Owns the folder an experiment works in: made in one place, removed whatever happens, kept when asked.
//! Only a kill that no program can catch leaves it behind. What lies inside belongs to the experiments.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use napreduce_live::ByteSize;
use rustix::fs::{statvfs, syncfs};
use tempfile::TempDir;

/// Where an experiment works.
#[derive(Clone, Debug, Default, Args)]
pub struct WorkSettings {
    /// Where clusters, inputs and outputs go, in a folder of their own that is removed at the end [default:
    /// the system's folder for temporary files]
    #[arg(long = "work", value_name = "DIR")]
    pub parent: Option<PathBuf>,
    /// Leave them in place
    #[arg(long)]
    pub keep: bool,
}

/// The folder of one experiment; removed with all it holds when dropped, unless it is to be kept.
#[derive(Debug)]
pub struct WorkFolder {
    folder: TempDir,
}

/// The folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    /// It cannot be made.
    #[error("cannot make a folder in {parent}: {source}; choose another with --work")]
    Make {
        /// The folder that was to hold it.
        parent: PathBuf,
        source: io::Error,
    },
    /// There is too little room.
    #[error(
        "{path} has {} free and this experiment wants {}; choose another folder with --work or a smaller size",
        free.rounded(), wanted.rounded()
    )]
    Room {
        path: PathBuf,
        /// Free bytes there.
        free: ByteSize,
        /// Bytes the experiment may need.
        wanted: ByteSize,
    },
    /// Something in it cannot be done.
    #[error("cannot {action} {path}: {source}")]
    Use { action: &'static str, path: PathBuf, source: io::Error },
}

impl WorkError {
    /// What is said when something cannot be done with a file or a folder.
    pub fn using(action: &'static str, path: &Path) -> impl Fn(io::Error) -> WorkError + Copy {
        move |source| WorkError::Use { action, path: path.to_owned(), source }
    }
}

impl WorkFolder {
    /// Makes the folder and checks that `wanted` bytes are free there.
    ///
    /// # Errors
    ///
    /// When it cannot be made or there is too little room.
    pub fn make(settings: &WorkSettings, wanted: ByteSize) -> Result<WorkFolder, WorkError> {
        let parent = settings.parent.clone().unwrap_or_else(std::env::temp_dir);
        let refused = |source| WorkError::Make { parent: parent.clone(), source };
        // Absolute: programs run with another working folder.
        let absolute = fs::canonicalize(&parent).map_err(refused)?;
        let free = free_bytes(&absolute).map_err(refused)?;
        if free < wanted {
            return Err(WorkError::Room { path: parent, free, wanted });
        }
        let mut folder =
            tempfile::Builder::new().prefix("nap-lab-").tempdir_in(&absolute).map_err(refused)?;
        folder.disable_cleanup(settings.keep);
        Ok(WorkFolder { folder })
    }

    /// The folder's absolute path.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A new empty folder of this name inside; one that exists is emptied.
    ///
    /// # Errors
    ///
    /// When the file system refuses.
    pub fn fresh(&self, name: &str) -> Result<PathBuf, WorkError> {
        let path = self.path().join(name);
        remove(&path)?;
        fs::create_dir(&path).map_err(WorkError::using("make", &path))?;
        Ok(path)
    }

    /// Waits until the folder's file system has written out everything, so that one run does not pay for
    /// another's output.
    ///
    /// # Errors
    ///
    /// When the file system refuses.
    pub fn settle(&self) -> Result<(), WorkError> {
        let failed = WorkError::using("settle", self.path());
        let folder = File::open(self.path()).map_err(failed)?;
        syncfs(&folder).map_err(|error| failed(error.into()))
    }
}

/// Removes a folder with all it holds; one that does not exist is fine.
///
/// # Errors
///
/// When the file system refuses.
pub fn remove(path: &Path) -> Result<(), WorkError> {
    match fs::remove_dir_all(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(WorkError::Use { action: "remove", path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}

/// Writes a file, and the folder it is in.
pub fn write(path: &Path, contents: impl AsRef<[u8]>) -> Result<(), WorkError> {
    let failed = WorkError::using("write", path);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    fs::write(path, contents).map_err(failed)
}

fn free_bytes(path: &Path) -> io::Result<ByteSize> {
    let space = statvfs(path)?;
    Ok(ByteSize::new(space.f_bavail.saturating_mul(space.f_frsize)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inside(parent: &Path, keep: bool) -> WorkSettings {
        WorkSettings { parent: Some(parent.to_owned()), keep }
    }

    #[test]
    fn the_folder_goes_with_its_guard_unless_kept() {
        let parent = tempfile::tempdir().unwrap();
        for keep in [false, true] {
            let work = WorkFolder::make(&inside(parent.path(), keep), ByteSize::new(0)).unwrap();
            let path = work.path().to_owned();
            fs::write(work.fresh("inner").unwrap().join("file"), "x").unwrap();
            work.settle().unwrap();
            drop(work);
            assert_eq!(path.exists(), keep);
        }
    }

    #[test]
    fn a_fresh_folder_is_empty() {
        let parent = tempfile::tempdir().unwrap();
        let work = WorkFolder::make(&inside(parent.path(), false), ByteSize::new(0)).unwrap();
        fs::write(work.fresh("run").unwrap().join("left over"), "x").unwrap();
        assert_eq!(fs::read_dir(work.fresh("run").unwrap()).unwrap().count(), 0);
    }

    #[test]
    fn too_little_room_is_said_before_anything_is_written() {
        let parent = tempfile::tempdir().unwrap();
        let error = WorkFolder::make(&inside(parent.path(), false), ByteSize::new(u64::MAX)).unwrap_err();
        assert!(matches!(error, WorkError::Room { .. }) && error.to_string().contains("--work"), "{error}");
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_missing_parent_is_named() {
        let error =
            WorkFolder::make(&inside(Path::new("/nowhere/at-all"), false), ByteSize::new(0)).unwrap_err();
        assert!(error.to_string().starts_with("cannot make a folder in /nowhere/at-all"), "{error}");
    }
}
