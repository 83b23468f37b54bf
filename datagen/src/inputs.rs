//! Lists the data files of an input path.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// Returns a file itself, or the entries of a directory in name order, skipping names that start with `_` or
/// `.` as Hadoop does.
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
