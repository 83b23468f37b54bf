//! Parts that guests of another engine have written: where they wait, and how they come among those
//! that are committed.
//!
//! Owns that only a file of the job's own is taken. Does not own which attempt's part counts (`guests`), nor
//! the commit.

use std::path::{Path, PathBuf};

use napreduce_engine::AttemptId;
use napreduce_protocol::{GuestPart, JobError, NamedPart, PendingPart};

use super::claim::DirectoryClaim;
use super::commit::missing;
use super::trouble::{Trouble, refused};

/// Makes the directory in which guests write their parts; its path, as tasks use it.
pub(crate) fn make_guests(claim: &DirectoryClaim) -> Result<PathBuf, JobError> {
    let (storage, guests) = (claim.storage(), claim.paths().guests());
    let made = storage.make_directory(&guests);
    made.map_err(|error| {
        refused(storage.path(), Trouble::io(format!("make {}", storage.shown(&guests)), &error))
    })?;
    Ok(storage.path().join(guests))
}

/// Puts a part, and the ones with a name that belong to it, among those that the job commits. Can be
/// done again.
pub(crate) fn promote_guest(
    claim: &DirectoryClaim,
    attempt: AttemptId,
    part: &GuestPart,
) -> Result<(), Trouble> {
    let (storage, paths) = (claim.storage(), claim.paths());
    let PendingPart::File(written) = &part.pending;
    let guests = paths.guests();
    let name = written.file_name().filter(|_| written.parent() == Some(&storage.path().join(&guests)));
    let Some(name) = name else {
        let what = format!(
            "{attempt} has reported {} as its part, which is no file of this job's guests",
            written.display()
        );
        return Err(Trouble::Final(what));
    };
    let output = part.output();
    if !output.has_sound_names() {
        return Err(Trouble::Final(format!(
            "{attempt} has reported outputs whose names cannot be those of files"
        )));
    }
    let (from, to) = (guests.join(name), paths.committed().join(paths.promoted_name(attempt)));
    for NamedPart { name, bytes, .. } in &output.named {
        promote(claim, &NamedPart::beside(&from, name), &NamedPart::beside(&to, name), *bytes)?;
    }
    promote(claim, &from, &to, output.bytes)
}

fn promote(claim: &DirectoryClaim, from: &Path, to: &Path, bytes: u64) -> Result<(), Trouble> {
    let storage = claim.storage();
    let is_there = |path: &Path| {
        let found = storage.find(path);
        found.map_err(|error| Trouble::io(format!("find {}", storage.shown(path)), &error))
    };
    match is_there(from)? {
        Some(found) if found.is_file && found.bytes == bytes => {}
        // It was moved before something else had to be tried again.
        None if is_there(to)?.is_some_and(|found| found.is_file && found.bytes == bytes) => return Ok(()),
        found => return Err(missing(storage, from, bytes, found)),
    }
    let moved = storage.rename(from, to);
    moved.map_err(|error| {
        Trouble::io(format!("move {} to {}", storage.shown(from), storage.shown(to)), &error)
    })
}
