//! Files passed between the process that runs Hadoop's jobs and the commands of its tasks.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Directory for messages of failed attempts, in the directory for parts.
const FAILURES: &str = "napreduce-failures";

/// The input of a task's command, in the directory of shipped files.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Shipment {
    pub(super) job: String,
    pub(super) reduces: u32,
    pub(super) parts: PathBuf,
    /// File names there.
    pub(super) program: String,
    pub(super) plan: String,
    /// Side files: the name in the task and the shipped name.
    pub(super) files: Vec<(String, String)>,
}

/// A failed attempt.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Failure {
    pub(super) task: String,
    pub(super) status: i32,
    pub(super) reason: String,
}

impl Failure {
    /// Creates the directory for failures among the parts of a job.
    pub(super) fn place(parts: &Path) -> io::Result<()> {
        fs::create_dir_all(parts.join(FAILURES))
    }

    /// Writes the failure for the submitter, one per attempt. The directory is removed with the job.
    pub(super) fn write(&self, parts: &Path, attempt: &str) -> io::Result<()> {
        let folder = parts.join(FAILURES);
        let unfinished = folder.join(format!(".{attempt}"));
        fs::write(&unfinished, serde_json::to_vec(self)?)?;
        fs::rename(&unfinished, folder.join(attempt))
    }

    /// Returns the failure of a job to report: a fatal one, else the last one.
    pub(super) fn worst(parts: &Path) -> Option<Failure> {
        let entries = fs::read_dir(parts.join(FAILURES)).ok()?.flatten();
        let finished =
            entries.filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'));
        let known = |entry: fs::DirEntry| {
            let written = entry.metadata().and_then(|about| about.modified()).ok()?;
            let failure: Failure = read(&entry.path()).ok()?;
            Some((failure.is_fatal(), written, failure))
        };
        let found = finished
            .filter_map(known)
            .max_by_key(|(fatal, written, _)| (*fatal, *written));
        found.map(|(_, _, failure)| failure)
    }

    /// Returns whether retries cannot help.
    pub(super) fn is_fatal(&self) -> bool {
        self.status == 65
    }
}

/// Reads a file of JSON; an error names it.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<T, String> {
    let text =
        fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    serde_json::from_slice(&text).map_err(|error| format!("cannot use {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fatal_failure_is_reported_first() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(Failure::worst(folder.path()).is_none());
        let failure = || Failure {
            task: "a".to_owned(),
            status: 64,
            reason: "it is late".to_owned(),
        };
        assert!(
            failure().write(folder.path(), "a_0").is_err(),
            "a late attempt makes no place"
        );
        Failure::place(folder.path()).expect("made");
        for (attempt, status) in [("a_0", 64), ("b_0", 65), ("c_0", 64)] {
            let failure = Failure {
                task: attempt.to_owned(),
                status,
                reason: "it is bad".to_owned(),
            };
            failure
                .write(folder.path(), attempt)
                .expect("it can be written");
        }
        let worst = Failure::worst(folder.path()).expect("there are three");
        assert!(worst.is_fatal() && worst.task == "b_0", "{worst:?}");
    }
}
