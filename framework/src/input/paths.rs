//! The files that INPUT arguments mean.
//!
//! Owns the expansion of files, directories and globs, and the errors about them. Does not own what is in the files.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use super::InputError;

/// A file to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFile {
    /// Its path, beginning as the argument did.
    pub path: PathBuf,
    /// Its size in bytes as it is stored.
    pub size: u64,
}

/// The files that `inputs` mean, sorted by path, each once however many arguments mean it, and each known to be readable.
///
/// A directory means the files directly in it; names starting with `_` or `.` are left out, there and where a glob
/// matches them without spelling that first letter. A directory that a glob matches is a directory argument.
pub fn expand<P: AsRef<Path>>(inputs: &[P]) -> Result<Vec<InputFile>, InputError> {
    let mut files = BTreeMap::new();
    for input in inputs {
        let path = input.as_ref();
        match (metadata(path), path.to_str()) {
            (Ok(metadata), _) => add_path(path, &metadata, &mut files)?,
            // What exists under this very name is meant by it, also with the letters of a glob.
            (Err(error), Some(pattern)) if is_absent(&error) && is_glob(pattern) => {
                add_glob(pattern, &mut files)?;
            }
            (Err(error), _) => return Err(unreadable(path, error)),
        }
    }
    Ok(files.into_iter().map(|(path, size)| InputFile { path, size }).collect())
}

fn metadata(path: &Path) -> io::Result<Metadata> {
    fs::metadata(path)
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn unreadable(path: &Path, error: io::Error) -> InputError {
    if is_absent(&error) {
        InputError::Missing { path: path.to_owned() }
    } else {
        InputError::unreadable(path, error)
    }
}

fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

fn is_hidden(name: &OsStr) -> bool {
    matches!(name.as_encoded_bytes().first(), Some(b'_' | b'.'))
}

fn add_path(path: &Path, metadata: &Metadata, files: &mut BTreeMap<PathBuf, u64>) -> Result<(), InputError> {
    if metadata.is_dir() {
        add_directory(path, files)
    } else if metadata.is_file() {
        add_file(path, metadata.len(), files)
    } else {
        Err(InputError::NotAFile { path: path.to_owned() })
    }
}

fn add_file(path: &Path, size: u64, files: &mut BTreeMap<PathBuf, u64>) -> Result<(), InputError> {
    // Better to know now than in a task.
    File::open(path).map_err(|error| unreadable(path, error))?;
    files.insert(path.to_owned(), size);
    Ok(())
}

fn add_directory(directory: &Path, files: &mut BTreeMap<PathBuf, u64>) -> Result<(), InputError> {
    let entries = fs::read_dir(directory).map_err(|error| InputError::unreadable(directory, error))?;
    for entry in entries {
        let entry = entry.map_err(|error| InputError::unreadable(directory, error))?;
        if is_hidden(&entry.file_name()) {
            continue;
        }
        let path = entry.path();
        let metadata = metadata(&path).map_err(|error| unreadable(&path, error))?;
        if !metadata.is_dir() {
            add_path(&path, &metadata, files)?;
        }
    }
    Ok(())
}

fn add_glob(pattern: &str, files: &mut BTreeMap<PathBuf, u64>) -> Result<(), InputError> {
    let matches = glob::glob(pattern)
        .map_err(|error| InputError::BadPattern { pattern: pattern.to_owned(), reason: error.to_string() })?;
    let hidden_meant = Path::new(pattern).file_name().is_some_and(is_hidden);
    let mut found = false;
    for path in matches {
        let path = path.map_err(|error| {
            let path = error.path().to_owned();
            InputError::unreadable(&path, error.into())
        })?;
        if !hidden_meant && path.file_name().is_some_and(is_hidden) {
            continue;
        }
        found = true;
        let metadata = metadata(&path).map_err(|error| unreadable(&path, error))?;
        add_path(&path, &metadata, files)?;
    }
    if found { Ok(()) } else { Err(InputError::NoMatch { pattern: pattern.to_owned() }) }
}
