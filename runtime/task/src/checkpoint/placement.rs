//! The directory of a checkpoint while it is being made. Sealed files are moved into it by renames where
//! possible.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use napreduce_protocol::IoResult;

use super::description::Checkpoint;
use super::error::CheckpointError;

/// Where one attempt saves.
#[derive(Debug)]
pub struct CheckpointDirectory {
    path: PathBuf,
    durable: bool,
    bytes: u64,
}

impl CheckpointDirectory {
    /// Makes the directory, and the one of all checkpoints around it. Not the job's: one that is missing was
    /// removed by somebody. If it is `durable`, whatever comes into it is on the disk when `finish` returns.
    ///
    /// # Errors
    /// `Io`.
    pub fn make(path: &Path, durable: bool) -> Result<CheckpointDirectory, CheckpointError> {
        for directory in path.parent().into_iter().chain([path]) {
            let made = fs::create_dir(directory).unless_there();
            made.map_err(|error| CheckpointError::io("create", directory, error))?;
        }
        Ok(CheckpointDirectory { path: path.to_owned(), durable, bytes: 0 })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What a file in it is called in a description: from the directory of all checkpoints.
    pub fn name(&self, file: &str) -> String {
        let own = self.path.file_name().unwrap_or_default();
        format!("{}/{file}", own.to_string_lossy())
    }

    /// Counts a file that somebody else has put here.
    pub fn count(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Moves a complete file here, by a copy where it comes from another file system. Answers its length.
    ///
    /// # Errors
    /// `Io`.
    pub fn take_in(&mut self, from: &Path, file: &str) -> Result<u64, CheckpointError> {
        let to = self.path.join(file);
        if self.durable {
            let synced = File::open(from).and_then(|file| file.sync_data());
            synced.map_err(|error| CheckpointError::io("sync", from, error))?;
        }
        match fs::rename(from, &to) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => self.copy(from, &to)?,
            moved => moved.map_err(|error| CheckpointError::io("move to the checkpoint", from, error))?,
        }
        let length = fs::metadata(&to).map_err(|error| CheckpointError::io("inspect", &to, error))?.len();
        self.bytes += length;
        Ok(length)
    }

    fn copy(&self, from: &Path, to: &Path) -> Result<(), CheckpointError> {
        fs::copy(from, to).map_err(|error| CheckpointError::io("copy to the checkpoint", from, error))?;
        if self.durable {
            let synced = File::open(to).and_then(|file| file.sync_data());
            synced.map_err(|error| CheckpointError::io("sync", to, error))?;
        }
        fs::remove_file(from).map_err(|error| CheckpointError::io("remove", from, error))
    }

    /// Writes the description, the last step. Answers the bytes of all files that were made for the
    /// checkpoint.
    ///
    /// # Errors
    /// As of [`Checkpoint::write`].
    pub fn finish(self, checkpoint: &Checkpoint) -> Result<u64, CheckpointError> {
        Ok(self.bytes + checkpoint.write(&self.path, self.durable)?)
    }
}
