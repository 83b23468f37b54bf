//! Files and directories of data.
//!
//! Owns which files of a directory count and in which order. Does not own what is in them.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// A file itself; what a directory holds in name order, without the names that mark what is not data.
pub(crate) fn list(input: &Path) -> io::Result<Vec<PathBuf>> {
    if !fs::metadata(input)?.is_dir() {
        return Ok(vec![input.to_owned()]);
    }
    let mut paths = Vec::new();
    for entry in fs::read_dir(input)? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().starts_with(['_', '.']) {
            paths.push(entry.path());
        }
    }
    paths.sort_unstable();
    Ok(paths)
}
