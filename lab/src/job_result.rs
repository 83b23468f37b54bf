//! Owns reading what a finished job says of itself: the counters in `_SUCCESS`, and in what its program
//! prints. What the counters mean belongs to the runtime.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde_json::Value;

/// The counter that holds the largest anonymous memory of any one task, in bytes.
const PEAK_COUNTER: &str = "PEAK_ANON_BYTES";

/// The summary of a finished job cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JobResultError {
    #[error("cannot read {path}: {source}; a job that succeeds writes it last")]
    Read { path: PathBuf, source: io::Error },
    #[error("{path} is no JSON: {source}")]
    Malformed { path: PathBuf, source: serde_json::Error },
}

/// The largest anonymous memory of any one task of the job that wrote `output`; `None` when it does not count
/// that.
///
/// # Errors
///
/// When there is no `_SUCCESS` in `output`, or it is no JSON.
pub fn peak_task_bytes(output: &Path) -> Result<Option<u64>, JobResultError> {
    let path = output.join("_SUCCESS");
    let text = fs::read(&path).map_err(|source| JobResultError::Read { path: path.clone(), source })?;
    let summary: Value =
        serde_json::from_slice(&text).map_err(|source| JobResultError::Malformed { path, source })?;
    Ok(summary["counters"][PEAK_COUNTER].as_u64())
}

/// The counters of the first job that a program tells of, a line of JSON each, in the file that holds its
/// standard output; none when it tells of no job.
///
/// # Errors
///
/// When the file cannot be read, or its first line is no JSON.
pub fn first_job_counters(printed: &Path) -> Result<BTreeMap<String, u64>, JobResultError> {
    let path = printed.to_owned();
    let text =
        fs::read_to_string(printed).map_err(|source| JobResultError::Read { path: path.clone(), source })?;
    let Some(line) = text.lines().next() else { return Ok(BTreeMap::new()) };
    let report: Value =
        serde_json::from_str(line).map_err(|source| JobResultError::Malformed { path, source })?;
    let counters = report["counters"].as_object().into_iter().flatten();
    Ok(counters.filter_map(|(name, value)| Some((name.clone(), value.as_u64()?))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_those_of_the_first_job() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let read = |text: &str| {
            fs::write(&path, text).unwrap();
            first_job_counters(&path).map_err(|error| error.to_string())
        };
        let two = "{\"counters\": {\"A\": 1}}\n{\"counters\": {\"A\": 2}}\n";
        assert_eq!(read(two), Ok(BTreeMap::from([("A".to_owned(), 1)])));
        assert_eq!(read(""), Ok(BTreeMap::new()));
        assert!(read("hello").unwrap_err().contains("is no JSON"));
    }

    fn read(summary: &str) -> Result<Option<u64>, String> {
        let output = tempfile::tempdir().unwrap();
        fs::write(output.path().join("_SUCCESS"), summary).unwrap();
        peak_task_bytes(output.path()).map_err(|error| error.to_string())
    }

    #[test]
    fn the_counter_is_found_or_absent() {
        assert_eq!(read(r#"{"counters": {"PEAK_ANON_BYTES": 4096, "SPILLED_RECORDS": 1}}"#), Ok(Some(4096)));
        assert_eq!(read(r#"{"counters": {}}"#), Ok(None));
        assert_eq!(read("{}"), Ok(None));
    }

    #[test]
    fn no_summary_or_a_broken_one_is_said() {
        let error = read("{").unwrap_err();
        assert!(error.contains("_SUCCESS is no JSON"), "{error}");
        let missing = peak_task_bytes(Path::new("/nowhere")).unwrap_err().to_string();
        assert!(missing.contains("/nowhere/_SUCCESS"), "{missing}");
    }
}
