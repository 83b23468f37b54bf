//! The commit of a job: an intent that is recorded and then carried out whatever happens. Task processes have
//! already moved the parts of committed attempts to `committed`, under the attempt's name.
//!
//! ```text
//! parts checked -> _SUCCESS and intent.json written below _temporary -> claim.json says intent
//!   -> old _SUCCESS removed -> parts moved, replacing old ones -> other old parts removed -> directory synced
//!   -> _SUCCESS moved into place -> directory synced                         (then _temporary is removed, if possible)
//! ```
//!
//! Before `claim.json` contains the intent, nothing old is touched. Afterwards each step can be repeated by
//! any process: a part missing at its source has already been moved.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use napreduce_protocol::ClaimToken;

use super::intent::{INTENT_VERSION, IntendedPart, Intent, missing};
use super::layout::{JobPaths, SUCCESS, is_part, is_remains, is_unfinished_success};
use super::manifest::{Manifest, SuccessFile};
use super::places::{FileId, file_id};
use super::storage::Storage;
use super::trouble::Trouble;

/// The commit of a job whose intent is to be recorded.
pub(super) struct Commit<'a> {
    pub(super) storage: &'a Storage,
    pub(super) paths: &'a JobPaths,
    pub(super) token: ClaimToken,
    pub(super) overwrite: bool,
    /// Files that the job reads.
    pub(super) reads: &'a [PathBuf],
}

/// Writes the intent and `_SUCCESS` below `_temporary`.
pub(super) fn write_intent(commit: &Commit<'_>, manifest: &Manifest) -> Result<(), Trouble> {
    let Commit {
        storage,
        paths,
        token,
        ..
    } = *commit;
    let text = manifest.text(token, &BTreeMap::new())?;
    let mut parts = Vec::with_capacity(manifest.parts.len());
    for part in &manifest.parts {
        let from = paths.waiting_name(part);
        let to = part.report.name.clone();
        let place = paths.committed().join(&from);
        match storage.find(&place)? {
            Some(found) if found.is_file && found.bytes == part.report.bytes => {
                parts.push(IntendedPart {
                    from,
                    to,
                    bytes: found.bytes,
                    inode: found.inode,
                });
            }
            found => return Err(missing(storage, &place, part.report.bytes, found)),
        }
    }
    let mut present = BTreeSet::new();
    for name in storage.names(Path::new(""))? {
        present.extend(name.into_string().ok());
    }
    let mut new: Vec<&str> = parts.iter().map(|part| part.to.as_str()).collect();
    new.push(SUCCESS);
    let mut replaced = Vec::new();
    for name in new {
        if !present.contains(name) {
            continue;
        }
        if let Some(found) = storage.find(Path::new(name))?
            && found.is_directory
        {
            let place = storage.shown(Path::new(name));
            return Err(Trouble::Final(format!(
                "cannot move a part to {place}: it is a directory"
            )));
        }
        if !is_remains(name.as_ref()) {
            replaced.push(name.to_owned());
        }
    }
    let removed = older_files(storage, present, &parts)?;
    check_replaced(commit, replaced.iter().chain(&removed))?;
    let intent = Intent {
        version: INTENT_VERSION,
        claim: token,
        parts,
        removed,
    };
    let intent = serde_json::to_vec(&intent)
        .map_err(|error| Trouble::Final(format!("cannot encode the commit intent: {error}")))?;
    storage.sync_directory(&paths.committed())?;
    storage.replace(&paths.staged_success(), &text)?;
    Ok(storage.replace(&paths.intent(), &intent)?)
}

/// Rejects a commit that would replace or remove a file that the job reads, under any name, or a file that
/// appeared in a directory whose files must not be overwritten.
fn check_replaced<'a>(
    commit: &Commit<'_>,
    names: impl Iterator<Item = &'a String>,
) -> Result<(), Trouble> {
    let storage = commit.storage;
    let mut replaced: BTreeMap<FileId, &Path> = BTreeMap::new();
    for name in names.map(Path::new) {
        if !commit.overwrite {
            let name = storage.shown(name);
            return Err(Trouble::Final(format!(
                "{name} appeared while the job ran; move it away, or replace it with --overwrite"
            )));
        }
        let found = storage.find(name)?;
        replaced.extend(found.map(|found| ((found.device, found.inode), name)));
    }
    if replaced.is_empty() {
        return Ok(());
    }
    for read in commit.reads {
        if let Some(name) = file_id(read).and_then(|id| replaced.get(&id)) {
            let name = storage.shown(name);
            let read = read.display();
            return Err(Trouble::Final(format!(
                "{name} was not replaced: it is {read}, which the job reads; choose another output directory"
            )));
        }
    }
    Ok(())
}

/// Returns the files of an older job that this one does not replace: those listed in its `_SUCCESS`, and
/// those with names of parts. Jobs write no directories, so directories are skipped.
fn older_files(
    storage: &Storage,
    names: BTreeSet<String>,
    parts: &[IntendedPart],
) -> Result<Vec<String>, Trouble> {
    let mut listed = BTreeSet::new();
    if let Some(written) = SuccessFile::read(storage)? {
        listed.extend(written.files());
    }
    let new: BTreeSet<&str> = parts.iter().map(|part| part.to.as_str()).collect();
    let mut older = Vec::new();
    for name in names {
        if new.contains(name.as_str()) {
            continue;
        }
        let is_of_a_job = listed.contains(&name)
            || is_part(name.as_ref())
            || is_unfinished_success(name.as_ref());
        if !is_of_a_job {
            continue;
        }
        if let Some(found) = storage.find(Path::new(&name))?
            && !found.is_directory
        {
            older.push(name);
        }
    }
    Ok(older)
}
