//! Owns the file of raw measurements: one line of JSON for each, written as soon as it is there, so that an
//! experiment that is interrupted leaves what it had. What is in a line belongs to the experiments.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::workspace::WorkError;

/// The file, open.
#[derive(Debug)]
pub struct RawFile {
    path: PathBuf,
    file: File,
}

impl RawFile {
    /// A new file; one that exists is refused, since it holds somebody's measurements.
    ///
    /// # Errors
    /// When it exists or cannot be made.
    pub fn create(path: &Path) -> Result<RawFile, WorkError> {
        let file = File::create_new(path).map_err(WorkError::using("make", path))?;
        Ok(RawFile { path: path.to_owned(), file })
    }

    /// Adds a line.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&mut self, measurement: &impl Serialize) -> Result<(), WorkError> {
        let failed = WorkError::using("write", &self.path);
        let mut line = serde_json::to_string(measurement).map_err(|error| failed(error.into()))?;
        line.push('\n');
        self.file.write_all(line.as_bytes()).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_there_at_once_and_a_file_is_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("raw.jsonl");
        let mut raw = RawFile::create(&path).unwrap();
        raw.add(&serde_json::json!({"a": 1})).unwrap();
        raw.add(&serde_json::json!({"a": 2})).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"a\":1}\n{\"a\":2}\n");
        let error = RawFile::create(&path).unwrap_err().to_string();
        assert!(error.starts_with("cannot make ") && error.contains("raw.jsonl"), "{error}");
    }
}
