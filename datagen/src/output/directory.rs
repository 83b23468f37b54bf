//! Output directory of a generator: its creation, the check that it may be written to, and the removal of an
//! earlier output.

use super::{FileNames, OutputError, io_error, part};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A directory that may be written to.
pub(super) struct Directory {
    path: PathBuf,
    created: bool,
    /// Files that overwriting removes, listed before any work starts.
    earlier: Vec<PathBuf>,
}

impl Directory {
    /// Creates `path`, or checks that its files may be overwritten.
    pub(super) fn prepare(path: &Path, overwrite: bool) -> Result<Self, OutputError> {
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                fs::create_dir_all(path).map_err(io_error("create output directory", path))?;
                return Ok(Self {
                    path: path.to_owned(),
                    created: true,
                    earlier: Vec::new(),
                });
            }
            Err(error) if error.kind() == ErrorKind::NotADirectory => {
                return Err(OutputError::NotDirectory {
                    directory: path.to_owned(),
                });
            }
            Err(error) => return Err(io_error("read output directory", path)(error)),
        };
        let mut earlier = Vec::new();
        for entry in entries {
            let entry = entry.map_err(io_error("read output directory", path))?;
            if !overwrite {
                return Err(OutputError::Exists {
                    directory: path.to_owned(),
                });
            }
            let kind = entry
                .file_type()
                .map_err(io_error("examine", &entry.path()))?;
            if kind.is_dir() || !is_output(&entry.path()) {
                return Err(OutputError::Foreign { path: entry.path() });
            }
            earlier.push(entry.path());
        }
        // Files left by a killed run are not output: they are removed at once, before new files use their
        // names.
        let (partial, earlier): (Vec<_>, Vec<_>) =
            earlier.into_iter().partition(|path| part::is_partial(path));
        for path in &partial {
            fs::remove_file(path).map_err(io_error("remove", path))?;
        }
        Ok(Self {
            path: path.to_owned(),
            created: false,
            earlier,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the files of the earlier output.
    pub(super) fn remove_earlier_output(&self) -> Result<(), OutputError> {
        for path in &self.earlier {
            fs::remove_file(path).map_err(io_error("remove", path))?;
        }
        Ok(())
    }

    /// Removes the directory after an error, if this run has created it.
    pub(super) fn discard(&self) {
        if self.created {
            // Best effort, since an error is reported already; a directory that another process has written
            // to is not empty and stays.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

/// Returns whether datagen or a job has written this file: a part, a partial part, or the `_SUCCESS` file.
fn is_output(path: &Path) -> bool {
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy())
        .unwrap_or_default();
    let is_part = FileNames::ALL
        .iter()
        .any(|names| name.starts_with(names.affixes().0));
    is_part || name == "_SUCCESS" || part::is_partial(path)
}
