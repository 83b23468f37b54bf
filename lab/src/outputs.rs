//! Outputs of jobs: digests over the names and bytes of part files, and counters in `_SUCCESS` and on standard output.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_128;

use crate::error::cannot;
use crate::workspace::remove;

/// The action of an error about an output.
pub const READ: &str = "read the output";

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OutputDigest(String);

impl OutputDigest {
    /// The digest of the part files in `folder`.
    pub fn read(folder: &Path) -> Result<OutputDigest> {
        let mut text = String::new();
        for path in output_files(folder).map_err(cannot(READ, folder))? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with("part-") {
                let bytes = fs::read(&path).map_err(cannot(READ, &path))?;
                text.push_str(&format!(
                    "{name} {} {:032x}\n",
                    bytes.len(),
                    xxh3_128(&bytes)
                ));
            }
        }
        if text.is_empty() {
            bail!(
                "the output {} has no part files; did its job succeed?",
                folder.display()
            );
        }
        Ok(OutputDigest(format!("{:032x}", xxh3_128(text.as_bytes()))))
    }

    /// The digest of an output, which is then removed.
    pub fn take(folder: &Path) -> Result<OutputDigest> {
        let digest = OutputDigest::read(folder)?;
        remove(folder)?;
        Ok(digest)
    }
}

/// The files of an output folder that hold records, in name order.
pub fn output_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().starts_with(['_', '.']) {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// The counter that holds the largest anonymous memory of any one task, in bytes.
const PEAK_COUNTER: &str = "PEAK_ANON_BYTES";

/// The largest anonymous memory of any task of the job that wrote `output`, if the job counts it.
pub fn peak_task_bytes(output: &Path) -> Result<Option<u64>> {
    let path = output.join("_SUCCESS");
    let text = fs::read(&path).map_err(cannot("read", &path))?;
    let summary: Value = serde_json::from_slice(&text)
        .with_context(|| format!("{}: invalid JSON", path.display()))?;
    Ok(summary["counters"][PEAK_COUNTER].as_u64())
}

/// The counters of the first job in the standard output of a program, which has a line of JSON for each job.
pub fn first_job_counters(printed: &Path) -> Result<BTreeMap<String, u64>> {
    let path = printed.to_owned();
    let text = fs::read_to_string(printed).map_err(cannot("read", &path))?;
    let Some(line) = text.lines().next() else {
        return Ok(BTreeMap::new());
    };
    let report: Value =
        serde_json::from_str(line).with_context(|| format!("{}: invalid JSON", path.display()))?;
    let counters = report["counters"].as_object().into_iter().flatten();
    Ok(counters
        .filter_map(|(name, value)| Some((name.clone(), value.as_u64()?)))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(parts: &[(&str, &str)]) -> OutputDigest {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in parts {
            fs::write(folder.path().join(name), text).unwrap();
        }
        OutputDigest::read(folder.path()).unwrap()
    }

    #[test]
    fn digest_covers_names_and_bytes_of_parts() {
        let one = digest(&[
            ("part-r-00000", "a\n"),
            ("part-r-00001", "b\n"),
            ("_SUCCESS", "job_0001"),
        ]);
        assert_eq!(
            one,
            digest(&[
                ("part-r-00001", "b\n"),
                ("part-r-00000", "a\n"),
                ("_SUCCESS", "job_0002")
            ])
        );
        assert_ne!(
            one,
            digest(&[("part-r-00000", "a\n"), ("part-r-00001", "c\n")])
        );
        assert_ne!(
            one,
            digest(&[("part-r-00000", "a\n"), ("part-r-00002", "b\n")])
        );
        assert_ne!(
            one,
            digest(&[("part-r-00000", "a\nb\n"), ("part-r-00001", "")])
        );
    }

    #[test]
    fn missing_output_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let error = OutputDigest::read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("no part files"), "{error}");
        let error = OutputDigest::read(Path::new("/nowhere/out"))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("cannot read the output /nowhere/out"),
            "{error}"
        );
    }

    #[test]
    fn counters_are_of_the_first_job() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let read = |text: &str| {
            fs::write(&path, text).unwrap();
            first_job_counters(&path).map_err(|error| error.to_string())
        };
        let two = "{\"counters\": {\"A\": 1}}\n{\"counters\": {\"A\": 2}}\n";
        assert_eq!(read(two), Ok(BTreeMap::from([("A".to_owned(), 1)])));
        assert_eq!(read(""), Ok(BTreeMap::new()));
        assert!(read("hello").unwrap_err().contains("invalid JSON"));
    }

    fn read(summary: &str) -> Result<Option<u64>, String> {
        let output = tempfile::tempdir().unwrap();
        fs::write(output.path().join("_SUCCESS"), summary).unwrap();
        peak_task_bytes(output.path()).map_err(|error| error.to_string())
    }

    #[test]
    fn peak_counter_may_be_absent() {
        assert_eq!(
            read(r#"{"counters": {"PEAK_ANON_BYTES": 4096, "SPILLED_RECORDS": 1}}"#),
            Ok(Some(4096))
        );
        assert_eq!(read(r#"{"counters": {}}"#), Ok(None));
        assert_eq!(read("{}"), Ok(None));
    }

    #[test]
    fn missing_or_invalid_summary_is_an_error() {
        let error = read("{").unwrap_err();
        assert!(error.contains("_SUCCESS: invalid JSON"), "{error}");
        let missing = peak_task_bytes(Path::new("/nowhere"))
            .unwrap_err()
            .to_string();
        assert!(missing.contains("/nowhere/_SUCCESS"), "{missing}");
    }
}
