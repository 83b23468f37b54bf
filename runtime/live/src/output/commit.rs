//! The commit of a job: parts into place, `_SUCCESS` last.
//!
//! Owns the order of the steps and the text of `_SUCCESS`. Does not own the commit of one attempt, whose task process
//! has already moved its part to the committed ones.
//!
//! ```text
//! old _SUCCESS away -> parts moved (over old ones of the same name) -> other old parts away -> _temporary away -> _SUCCESS
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use napreduce_core::JobId;
use serde::Serialize;

use super::claim::{OutputClaim, is_job_output, list};
use super::layout::{SUCCESS, SUCCESS_UNFINISHED};
use super::removal::remove_temporary;
use crate::counters::CounterValues;
use crate::report::{JobError, PartReport};

/// Version of the text of `_SUCCESS`.
const MANIFEST_VERSION: u32 = 1;

/// What `_SUCCESS` says.
#[derive(Debug, Clone)]
pub(crate) struct Manifest {
    pub(crate) job: JobId,
    pub(crate) name: String,
    pub(crate) counters: CounterValues,
    pub(crate) parts: Vec<PartReport>,
}

#[derive(Serialize)]
struct ManifestText<'a> {
    version: u32,
    job: String,
    name: &'a str,
    counters: BTreeMap<&'a str, u64>,
    parts: Vec<PartText<'a>>,
}

#[derive(Serialize)]
struct PartText<'a> {
    name: &'a str,
    records: u64,
    bytes: u64,
    /// xxh3-64 of the file, in hexadecimal.
    digest: String,
}

impl Manifest {
    fn text(&self) -> Result<String, JobError> {
        let parts = self.parts.iter().map(|part| PartText {
            name: &part.name,
            records: part.records,
            bytes: part.bytes,
            digest: format!("{:016x}", part.digest),
        });
        let text = serde_json::to_string_pretty(&ManifestText {
            version: MANIFEST_VERSION,
            job: self.job.to_string(),
            name: &self.name,
            counters: self.counters.iter().collect(),
            parts: parts.collect(),
        });
        text.map(|text| text + "\n")
            .map_err(|error| JobError::Internal(format!("cannot write _SUCCESS: {error}")))
    }
}

/// Puts the parts of a job that succeeded into place; replaces an older output. When it fails no part is left in place,
/// and the rest is for [`OutputClaim::discard`].
pub(crate) fn commit_job(claim: &OutputClaim, manifest: &Manifest) -> Result<(), JobError> {
    let text = manifest.text()?;
    let output = claim.paths().output();
    let mut in_place = Vec::new();
    let committed = place_parts(claim, manifest, &mut in_place).and_then(|()| write_success(output, &text));
    if committed.is_err() {
        for part in in_place {
            // A part that cannot be removed stays without _SUCCESS, which says that it is not to be used.
            let _ = fs::remove_file(part);
        }
    }
    committed
}

fn place_parts(
    claim: &OutputClaim,
    manifest: &Manifest,
    in_place: &mut Vec<PathBuf>,
) -> Result<(), JobError> {
    let paths = claim.paths();
    let (output, committed) = (paths.output(), paths.committed());
    let old = list(output)?;
    remove_if_there(&output.join(SUCCESS))?;
    for part in &manifest.parts {
        let (from, to) = (committed.join(&part.name), output.join(&part.name));
        fs::rename(&from, &to)
            .map_err(|error| JobError::io(format!("move {} to {}", from.display(), to.display()), error))?;
        in_place.push(to);
    }
    for name in old.iter().filter(|name| is_job_output(name)) {
        if !manifest.parts.iter().any(|part| *name == *part.name) {
            remove_if_there(&output.join(name))?;
        }
    }
    remove_temporary(paths)
        .map_err(|error| JobError::io(format!("remove {}", paths.temporary().display()), error))
}

/// A reader finds the whole text or none.
fn write_success(output: &Path, text: &str) -> Result<(), JobError> {
    let (unfinished, success) = (output.join(SUCCESS_UNFINISHED), output.join(SUCCESS));
    fs::write(&unfinished, text).and_then(|()| fs::rename(&unfinished, &success)).map_err(|error| {
        // Left behind it would only be in the way.
        let _ = fs::remove_file(&unfinished);
        JobError::io(format!("write {}", success.display()), error)
    })
}

/// Only files are ever a job's output.
fn remove_if_there(path: &Path) -> Result<(), JobError> {
    match fs::remove_file(path) {
        Err(error) if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::IsADirectory) => {
            Err(JobError::io(format!("remove {}", path.display()), error))
        }
        _ => Ok(()),
    }
}
