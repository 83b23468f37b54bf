//! The directory of a checkpoint that is being written. Sealed files are moved into it, by renames where
//! possible.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use napreduce_protocol::IoResult;

use super::description::Checkpoint;
use super::error::{CheckpointError, FileResult};

/// The directory to which an attempt saves its checkpoint.
#[derive(Debug)]
pub struct CheckpointDirectory {
    path: PathBuf,
    durable: bool,
    bytes: u64,
}

impl CheckpointDirectory {
    /// Creates the directory, and the directory of all checkpoints if it is missing. The job's directory must
    /// exist: if it is missing, it was removed and is not created again. If `durable`, files are synced
    /// before `finish` returns.
    ///
    /// # Errors
    /// Returns `Io` if a directory cannot be created.
    pub fn make(path: &Path, durable: bool) -> Result<CheckpointDirectory, CheckpointError> {
        for directory in path.parent().into_iter().chain([path]) {
            fs::create_dir(directory)
                .unless_there()
                .at("create", directory)?;
        }
        Ok(CheckpointDirectory {
            path: path.to_owned(),
            durable,
            bytes: 0,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the name of one of its files as used in descriptions: relative to the directory of all
    /// checkpoints.
    pub fn name(&self, file: &str) -> String {
        let own = self.path.file_name().unwrap_or_default();
        format!("{}/{file}", own.to_string_lossy())
    }

    /// Adds the length of a file that was written to the directory directly.
    pub fn count(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Moves a complete file into the directory; copies it if it is on another file system. Returns its
    /// length.
    ///
    /// # Errors
    /// Returns `Io` if the file cannot be synced, moved or inspected.
    pub fn take_in(&mut self, from: &Path, file: &str) -> Result<u64, CheckpointError> {
        let to = self.path.join(file);
        if self.durable {
            let synced = File::open(from).and_then(|file| file.sync_data());
            synced.at("sync", from)?;
        }
        match fs::rename(from, &to) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => self.copy(from, &to)?,
            moved => moved.at("move to the checkpoint", from)?,
        }
        let length = fs::metadata(&to).at("inspect", &to)?.len();
        self.bytes += length;
        Ok(length)
    }

    fn copy(&self, from: &Path, to: &Path) -> Result<(), CheckpointError> {
        fs::copy(from, to).at("copy to the checkpoint", from)?;
        if self.durable {
            let synced = File::open(to).and_then(|file| file.sync_data());
            synced.at("sync", to)?;
        }
        fs::remove_file(from).at("remove", from)
    }

    /// Writes the description as the last step. Returns the total size of the checkpoint's new files in
    /// bytes.
    ///
    /// # Errors
    /// The errors of [`Checkpoint::write`].
    pub fn finish(self, checkpoint: &Checkpoint) -> Result<u64, CheckpointError> {
        Ok(self.bytes + checkpoint.write(&self.path, self.durable)?)
    }
}
