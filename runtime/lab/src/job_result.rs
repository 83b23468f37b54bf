//! Owns reading what a finished job says of itself: the counters in `_SUCCESS`.
//! What the counters mean belongs to the runtime.

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

#[cfg(test)]
mod tests {
    use super::*;

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
