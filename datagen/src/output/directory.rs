//! The rules of an output directory: when it may be written to, and what overwriting removes.
//!
//! Owns creating the directory, refusing one in use, and removing an earlier output. Does not own the files
//! of the new one.

use super::{FileNames, OutputError, part, refused};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A directory that may be written to.
pub(super) struct Directory {
    path: PathBuf,
    created: bool,
    /// What overwriting removes, found before any work is done.
    earlier: Vec<PathBuf>,
}

impl Directory {
    /// Creates `path`, or checks that what it holds may be overwritten.
    pub(super) fn prepare(path: &Path, overwrite: bool) -> Result<Self, OutputError> {
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                fs::create_dir_all(path).map_err(refused("create output directory", path))?;
                return Ok(Self { path: path.to_owned(), created: true, earlier: Vec::new() });
            }
            Err(error) if error.kind() == ErrorKind::NotADirectory => {
                return Err(OutputError::NotDirectory { directory: path.to_owned() });
            }
            Err(error) => return Err(refused("read output directory", path)(error)),
        };
        let mut earlier = Vec::new();
        for entry in entries {
            let entry = entry.map_err(refused("read output directory", path))?;
            if !overwrite {
                return Err(OutputError::Exists { directory: path.to_owned() });
            }
            let kind = entry.file_type().map_err(refused("examine", &entry.path()))?;
            if kind.is_dir() || !is_output(&entry.path()) {
                return Err(OutputError::Foreign { path: entry.path() });
            }
            earlier.push(entry.path());
        }
        // What a killed run has left is no output: it goes at once, before new files take the same names.
        let (partial, earlier): (Vec<_>, Vec<_>) =
            earlier.into_iter().partition(|path| part::is_partial(path));
        for path in &partial {
            fs::remove_file(path).map_err(refused("remove", path))?;
        }
        Ok(Self { path: path.to_owned(), created: false, earlier })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the complete output that was there before.
    pub(super) fn remove_earlier_output(&self) -> Result<(), OutputError> {
        for path in &self.earlier {
            fs::remove_file(path).map_err(refused("remove", path))?;
        }
        Ok(())
    }

    /// Removes the directory after a failure, if this run has created it.
    pub(super) fn discard(&self) {
        if self.created {
            // Best effort on the way to reporting the failure itself; a directory somebody else has since
            // written into stays, because it is not empty.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

/// Whether datagen or a job has written this file: a part, a part under way, or the mark of a finished job.
fn is_output(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let is_file = FileNames::ALL.iter().any(|names| name.starts_with(names.around_number().0));
    is_file || name == "_SUCCESS" || part::is_partial(path)
}
