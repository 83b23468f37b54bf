//! The commit of a job: parts into place, `_SUCCESS` last.
//!
//! Owns the order of the steps and the text of `_SUCCESS`. Does not own the commit of one attempt, whose task process
//! has already moved its part to the committed ones, under a name of that attempt.
//!
//! ```text
//! old _SUCCESS away -> _SUCCESS.unfinished -> parts moved (over old ones of the same name) -> other old parts away
//!   -> _temporary away -> _SUCCESS.unfinished becomes _SUCCESS
//! ```
//!
//! A coordinator that dies on the way does it again: `_SUCCESS.unfinished` of the same job says that a part which is
//! not among the committed ones any more is in place.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use napreduce_core::{AttemptId, JobId};
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
    pub(crate) parts: Vec<CommittedPart>,
}

/// A part and the attempt whose part it is.
#[derive(Debug, Clone)]
pub(crate) struct CommittedPart {
    pub(crate) attempt: AttemptId,
    pub(crate) report: PartReport,
}

/// Whether this commit can have been begun before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommitTry {
    First,
    /// The coordinator was started again since the end of the job was decided.
    Again,
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
    pub(super) fn text(&self) -> Result<String, JobError> {
        let parts = self.parts.iter().map(|part| &part.report).map(|part| PartText {
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
pub(crate) fn commit_job(
    claim: &OutputClaim,
    manifest: &Manifest,
    commit_try: CommitTry,
) -> Result<(), JobError> {
    let text = manifest.text()?;
    let output = claim.paths().output();
    if commit_try == CommitTry::Again && holds(&output.join(SUCCESS), &text) {
        // Written last, so there is nothing left to do but what taking the claim again has made.
        return remove_work(claim);
    }
    let mut in_place = Vec::new();
    let committed = begin(output, &text, commit_try)
        .and_then(|begun| place_parts(claim, manifest, begun, &mut in_place))
        .and_then(|()| finish(output));
    if committed.is_err() {
        for part in in_place {
            // A part that cannot be removed stays without _SUCCESS, which says that it is not to be used.
            let _ = fs::remove_file(part);
        }
        // Left behind it would only be in the way.
        let _ = fs::remove_file(output.join(SUCCESS_UNFINISHED));
    }
    committed
}

/// Whether parts may have been moved before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begun {
    Now,
    Before,
}

fn begin(output: &Path, text: &str, commit_try: CommitTry) -> Result<Begun, JobError> {
    let unfinished = output.join(SUCCESS_UNFINISHED);
    if commit_try == CommitTry::Again && holds(&unfinished, text) {
        return Ok(Begun::Before);
    }
    remove_if_there(&output.join(SUCCESS))?;
    fs::write(&unfinished, text)
        .map_err(|error| JobError::io(format!("write {}", unfinished.display()), error))?;
    Ok(Begun::Now)
}

fn holds(path: &Path, text: &str) -> bool {
    fs::read(path).is_ok_and(|found| found == text.as_bytes())
}

fn place_parts(
    claim: &OutputClaim,
    manifest: &Manifest,
    begun: Begun,
    in_place: &mut Vec<PathBuf>,
) -> Result<(), JobError> {
    let paths = claim.paths();
    let output = paths.output();
    let old = list(output)?;
    for part in &manifest.parts {
        let (from, to) = (paths.promoted(part.attempt), output.join(&part.report.name));
        match fs::rename(&from, &to) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && begun == Begun::Before => {
                check_in_place(&to, &from, part.report.bytes)?;
            }
            moved => moved.map_err(|error| {
                JobError::io(format!("move {} to {}", from.display(), to.display()), error)
            })?,
        }
        in_place.push(to);
    }
    for name in old.iter().filter(|name| is_job_output(name) && **name != *SUCCESS_UNFINISHED) {
        if !manifest.parts.iter().any(|part| *name == *part.report.name) {
            remove_if_there(&output.join(name))?;
        }
    }
    remove_work(claim)
}

/// A part that was moved before: there, and of the length that was reported.
fn check_in_place(part: &Path, from: &Path, bytes: u64) -> Result<(), JobError> {
    match fs::metadata(part) {
        Ok(found) if found.is_file() && found.len() == bytes => Ok(()),
        found => {
            let found = found.map_or_else(|error| error.to_string(), |it| format!("{} bytes", it.len()));
            let source = io::Error::new(io::ErrorKind::NotFound, format!("{}: {found}", part.display()));
            let doing = format!("find a part of {bytes} bytes, neither as {} nor in place", from.display());
            Err(JobError::io(doing, source))
        }
    }
}

fn remove_work(claim: &OutputClaim) -> Result<(), JobError> {
    let paths = claim.paths();
    remove_temporary(paths)
        .map_err(|error| JobError::io(format!("remove {}", paths.temporary().display()), error))
}

/// A reader finds the whole text or none.
fn finish(output: &Path) -> Result<(), JobError> {
    let (unfinished, success) = (output.join(SUCCESS_UNFINISHED), output.join(SUCCESS));
    fs::rename(&unfinished, &success)
        .map_err(|error| JobError::io(format!("write {}", success.display()), error))
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
