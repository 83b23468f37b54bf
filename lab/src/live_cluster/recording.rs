//! Owns what is kept of a cluster when it has ended: the history of its jobs, beside the report of an
//! experiment, for whoever wants to see them on the page.

use std::fs;
use std::path::{Path, PathBuf};

use crate::workspace::WorkError;

/// Below the folder of a report, a folder for each of its clusters.
pub const RECORDINGS: &str = "recordings";

/// Copies the history in the directory of a cluster that has ended into a new folder.
pub(super) fn keep(cluster: &Path, folder: &Path) -> Result<(), WorkError> {
    copy(&cluster.join("coordinator").join("history"), folder)
}

fn copy(from: &Path, to: &Path) -> Result<(), WorkError> {
    fs::create_dir_all(to).map_err(WorkError::using("make", to))?;
    let reading = || WorkError::using("read", from);
    for entry in fs::read_dir(from).map_err(reading())? {
        let entry = entry.map_err(reading())?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(reading())?;
        if kind.is_dir() {
            copy(&source, &target)?;
        } else if kind.is_file() {
            fs::copy(&source, &target).map_err(WorkError::using("copy", &source))?;
        }
    }
    Ok(())
}

/// A folder of this name that is not there yet; one of a name that is has a number behind it.
pub fn new_place(recordings: &Path, name: &str) -> PathBuf {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut places = std::iter::once(name.to_owned()).chain(numbered).map(|name| recordings.join(name));
    places.find(|place| !place.exists()).unwrap_or_else(|| recordings.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_is_copied_with_what_is_in_it_and_never_over_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let history = folder.path().join("cluster/coordinator/history");
        fs::create_dir_all(history.join("cluster")).unwrap();
        fs::write(history.join("job_0001.json"), "{}").unwrap();
        fs::write(history.join("cluster/2026-11-27.napt"), "x").unwrap();
        let recordings = folder.path().join(RECORDINGS);
        let first = new_place(&recordings, "suspend.1");
        keep(&folder.path().join("cluster"), &first).unwrap();
        assert_eq!(fs::read(first.join("cluster/2026-11-27.napt")).unwrap(), b"x");
        assert_eq!(fs::read(recordings.join("suspend.1/job_0001.json")).unwrap(), b"{}");
        assert_eq!(new_place(&recordings, "suspend.1"), recordings.join("suspend.1-2"));
        let missing = keep(&folder.path().join("nowhere"), &recordings.join("x")).unwrap_err();
        assert!(missing.to_string().contains("nowhere/coordinator/history"), "{missing}");
    }
}
