//! Checks a submission before it reaches the loop: consistency, and that its program and files are stored.

use std::collections::{BTreeMap, BTreeSet};

use napreduce_protocol::{Blob, Digest, InputSplit, SideFile, Split, StorageScheme, Submission};

use crate::blobs::PinnedBlob;
use crate::coordinator::refusal::Refusal;

/// Maximum number of side files of one job.
pub(super) const FILES_MAX: usize = 1000;
const NAME_BYTES_MAX: usize = 255;

/// Rejects submissions that workers could not run. Reads the program's header, which is in the page cache.
pub(super) fn check(
    submission: &Submission,
    pins: &BTreeMap<Digest, PinnedBlob>,
) -> Result<(), Refusal> {
    let plan = &submission.plan;
    plan.check().map_err(Refusal::wrong)?;
    napreduce_protocol::check_name("user", &submission.user, "USER").map_err(Refusal::wrong)?;
    if !plan.output.is_absolute() && StorageScheme::from_path(&plan.output).is_none() {
        return Err(Refusal::wrong(format!(
            "output directory {} is not an absolute path",
            plan.output.display()
        )));
    }
    check_inputs(&plan.splits)?;
    check_files(&submission.files, pins)?;
    check_program(submission, pins)
}

fn check_inputs(splits: &[InputSplit]) -> Result<(), Refusal> {
    for split in splits {
        if split.parts.is_empty() {
            return Err(Refusal::wrong("invalid plan: a split has no file"));
        }
    }
    for part in splits.iter().flat_map(|split| &split.parts) {
        if !is_same_on_every_worker(part) {
            return Err(Refusal::wrong(format!(
                "input {} is not an absolute path",
                part.path.display()
            )));
        }
    }
    for part in splits.iter().flat_map(|split| &split.parts) {
        if !is_pinned(part) {
            return Err(Refusal::wrong(format!(
                "input {} has no version; submit with the napreduce version of the cluster",
                part.path.display()
            )));
        }
    }
    Ok(())
}

fn check_files(files: &[SideFile], pins: &BTreeMap<Digest, PinnedBlob>) -> Result<(), Refusal> {
    let count = files.len();
    if count > FILES_MAX {
        return Err(Refusal::wrong(format!(
            "too many side files: {count} (limit {FILES_MAX})"
        )));
    }
    let mut names = BTreeSet::new();
    for file in files {
        check_name(&file.name).map_err(Refusal::wrong)?;
        if !names.insert(file.name.as_str()) {
            return Err(Refusal::wrong(format!(
                "two side files have the name {:?}; rename one with PATH#NAME",
                file.name
            )));
        }
        pinned(&file.blob, pins)?;
    }
    Ok(())
}

fn check_program(
    submission: &Submission,
    pins: &BTreeMap<Digest, PinnedBlob>,
) -> Result<(), Refusal> {
    let program = pinned(&submission.program, pins)?;
    let architecture = program
        .architecture()
        .map_err(|error| Refusal::wrong(error.to_string()))?;
    if architecture != submission.architecture {
        return Err(Refusal::wrong(format!(
            "the program is for {architecture}, but was submitted for {}",
            submission.architecture
        )));
    }
    Ok(())
}

/// Returns whether an input's path has the same meaning on every worker.
fn is_same_on_every_worker(part: &Split) -> bool {
    part.path.is_absolute() || StorageScheme::from_path(&part.path).is_some()
}

/// Returns whether an object's version is pinned: attempts that read different versions would produce
/// inconsistent output.
fn is_pinned(part: &Split) -> bool {
    part.version.is_some() || StorageScheme::from_path(&part.path).is_none()
}

/// Checks that a name is a plain file name.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let is_invalid = name.is_empty()
        || name == "."
        || name == ".."
        || name.len() > NAME_BYTES_MAX
        || name.contains(['/', '\0']);
    if is_invalid {
        return Err(format!("invalid side file name {name:?}; use PATH#NAME"));
    }
    Ok(())
}

/// Returns the stored blob that the client's connection keeps for the submission.
fn pinned<'p>(
    blob: &Blob,
    pins: &'p BTreeMap<Digest, PinnedBlob>,
) -> Result<&'p PinnedBlob, Refusal> {
    let digest = blob.digest;
    match pins.get(&digest) {
        Some(pinned) => Ok(pinned),
        None => Err(Refusal::wrong(format!(
            "protocol error: blob {digest} was not offered before the submission"
        ))),
    }
}
