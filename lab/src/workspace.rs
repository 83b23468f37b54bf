//! Files of an experiment: its work folder, which is removed at the end unless `keep` is set, and the file of raw
//! measurements, one line of JSON each.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use napreduce_protocol::ByteSize;
use rustix::fs::{statvfs, syncfs};
use serde::Serialize;
use tempfile::TempDir;

use crate::error::{cannot, usage};

#[derive(Clone, Debug, Default, Args)]
pub struct WorkSettings {
    /// Folder for clusters, inputs and outputs; a new folder in it is removed at the end [default: the
    /// system's folder for temporary files]
    #[arg(long = "work", value_name = "DIR")]
    pub parent: Option<PathBuf>,
    /// Do not remove the new folder
    #[arg(long)]
    pub keep: bool,
}

/// The folder of one experiment, removed on drop unless `keep` is set.
#[derive(Debug)]
pub struct WorkFolder {
    folder: TempDir,
}

impl WorkFolder {
    /// Makes the folder and checks that `wanted` bytes are free there.
    pub fn make(settings: &WorkSettings, wanted: ByteSize) -> Result<WorkFolder> {
        let parent = settings.parent.clone().unwrap_or_else(std::env::temp_dir);
        let refused = |error: io::Error| {
            usage(format_args!(
                "cannot make a folder in {}: {error}; choose another with --work",
                parent.display()
            ))
        };
        // Absolute: programs run with another working folder.
        let absolute = fs::canonicalize(&parent).map_err(refused)?;
        let free = free_bytes(&absolute).map_err(refused)?;
        if free < wanted {
            return Err(usage(format_args!(
                "{} has {} free, and this experiment needs {}; choose another folder with --work or a smaller size",
                parent.display(),
                free.rounded(),
                wanted.rounded()
            )));
        }
        let mut folder = tempfile::Builder::new()
            .prefix("nap-lab-")
            .tempdir_in(&absolute)
            .map_err(refused)?;
        folder.disable_cleanup(settings.keep);
        Ok(WorkFolder { folder })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A new empty folder inside; an existing one is emptied.
    pub fn fresh(&self, name: &str) -> Result<PathBuf> {
        let path = self.path().join(name);
        remove(&path)?;
        fs::create_dir(&path).map_err(cannot("make", &path))?;
        Ok(path)
    }

    /// Syncs the file system, so that a run does not pay for the output of another.
    pub fn settle(&self) -> Result<()> {
        let failed = cannot("settle", self.path());
        let folder = File::open(self.path()).map_err(failed)?;
        syncfs(&folder).map_err(|error| failed(error.into()))
    }
}

/// Removes a folder with its contents, if it exists.
pub fn remove(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(cannot("remove", path)(source))
        }
        _ => Ok(()),
    }
}

/// Writes a file, and creates its folder.
pub fn write(path: &Path, contents: impl AsRef<[u8]>) -> Result<()> {
    let failed = cannot("write", path);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    fs::write(path, contents).map_err(failed)
}

fn free_bytes(path: &Path) -> io::Result<ByteSize> {
    let space = statvfs(path)?;
    Ok(ByteSize::new(space.f_bavail.saturating_mul(space.f_frsize)))
}

#[derive(Debug)]
pub struct RawFile {
    path: PathBuf,
    file: File,
}

impl RawFile {
    /// Creates the file; fails if it exists.
    pub fn create(path: &Path) -> Result<RawFile> {
        let file = File::create_new(path).map_err(cannot("make", path))?;
        Ok(RawFile {
            path: path.to_owned(),
            file,
        })
    }

    pub fn add(&mut self, measurement: &impl Serialize) -> Result<()> {
        let failed = cannot("write", &self.path);
        let mut line = serde_json::to_string(measurement).map_err(|error| failed(error.into()))?;
        line.push('\n');
        self.file.write_all(line.as_bytes()).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inside(parent: &Path, keep: bool) -> WorkSettings {
        WorkSettings {
            parent: Some(parent.to_owned()),
            keep,
        }
    }

    #[test]
    fn folder_is_removed_unless_kept() {
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
    fn fresh_folder_is_empty() {
        let parent = tempfile::tempdir().unwrap();
        let work = WorkFolder::make(&inside(parent.path(), false), ByteSize::new(0)).unwrap();
        fs::write(work.fresh("run").unwrap().join("left over"), "x").unwrap();
        assert_eq!(fs::read_dir(work.fresh("run").unwrap()).unwrap().count(), 0);
    }

    #[test]
    fn too_little_room_is_an_error() {
        let parent = tempfile::tempdir().unwrap();
        let error =
            WorkFolder::make(&inside(parent.path(), false), ByteSize::new(u64::MAX)).unwrap_err();
        assert!(
            error.to_string().contains("another folder with --work"),
            "{error}"
        );
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn missing_parent_is_named() {
        let error = WorkFolder::make(
            &inside(Path::new("/nowhere/at-all"), false),
            ByteSize::new(0),
        )
        .unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("cannot make a folder in /nowhere/at-all"),
            "{error}"
        );
    }

    #[test]
    fn raw_lines_are_written_at_once_to_a_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("raw.jsonl");
        let mut raw = RawFile::create(&path).unwrap();
        raw.add(&serde_json::json!({"a": 1})).unwrap();
        raw.add(&serde_json::json!({"a": 2})).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\"a\":1}\n{\"a\":2}\n");
        let error = RawFile::create(&path).unwrap_err().to_string();
        assert!(
            error.starts_with("cannot make ") && error.contains("raw.jsonl"),
            "{error}"
        );
    }
}
