//! The commit of a job: an intent that is recorded, and then carried out whatever happens.
//!
//! Owns the order of the steps. Does not own the commit of one attempt, whose task process has already moved
//! its part to those that wait, under a name of that attempt.
//!
//! ```text
//! parts looked at -> _SUCCESS and intent.json written below _temporary -> claim.json says intent
//!   -> old _SUCCESS away -> parts moved, over old ones of the same name -> other old parts away -> directory synced
//!   -> _SUCCESS moved into place -> directory synced                         (then _temporary is removed, if it can be)
//! ```
//!
//! Until `claim.json` says intent nothing old was touched. From then on each step can be done again, by
//! whoever comes: what is not where it was is where it shall be.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use napreduce_protocol::ClaimToken;
use serde::{Deserialize, Serialize};

use super::claim::{DirectoryClaim, Whose, whose};
use super::layout::{JobPaths, SUCCESS, is_part, is_remains, is_unfinished_success};
use super::manifest::{Manifest, Written};
use super::places::{FileId, file_id};
use super::record::Step;
use super::removal::{in_shares, share_of};
use super::storage::{Found, Storage};
use super::trouble::Trouble;

/// Version of `intent.json`.
const INTENT_VERSION: u32 = 1;
/// Fewer moves than this for each thread are not worth one.
const MOVES_MIN: usize = 128;

/// What a commit does.
#[derive(Debug, Serialize, Deserialize)]
struct Intent {
    version: u32,
    claim: ClaimToken,
    parts: Vec<IntendedPart>,
    /// Older files of a job that go.
    removed: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct IntendedPart {
    /// Among those that wait.
    from: String,
    /// In the output directory.
    to: String,
    bytes: u64,
    inode: u64,
}

/// Puts the parts of a job that succeeded into place; replaces an older output. When this fails before the
/// intent is recorded nothing old was touched; afterwards it is to be called again.
pub(crate) fn commit(claim: &mut DirectoryClaim, manifest: &Manifest) -> Result<(), Trouble> {
    claim.verify()?;
    if claim.step() == Step::Claimed {
        begin(claim, manifest)?;
    }
    roll_forward(claim.storage(), claim.paths(), claim.token())
}

fn begin(claim: &mut DirectoryClaim, manifest: &Manifest) -> Result<(), Trouble> {
    let (storage, paths, token) = (claim.storage(), claim.paths(), claim.token());
    let text = manifest.text(token, &BTreeMap::new())?;
    let mut parts = Vec::with_capacity(manifest.parts.len());
    for part in &manifest.parts {
        let (from, to) = (paths.waiting_name(part), part.report.name.clone());
        let place = paths.committed().join(&from);
        let found = storage.find(&place).map_err(|error| failed("find", storage, &place, &error))?;
        match found.filter(|found| found.is_file && found.bytes == part.report.bytes) {
            Some(Found { bytes, inode, .. }) => parts.push(IntendedPart { from, to, bytes, inode }),
            None => return Err(missing(storage, &place, part.report.bytes, found)),
        }
    }
    let names =
        storage.names(Path::new("")).map_err(|error| failed("list", storage, Path::new(""), &error))?;
    let names: BTreeSet<String> = names.into_iter().filter_map(|name| name.into_string().ok()).collect();
    let places = parts.iter().map(|part| part.to.as_str()).chain([SUCCESS]);
    for place in places.filter(|place| names.contains(*place)).map(Path::new) {
        let found = storage.find(place).map_err(|error| failed("find", storage, place, &error))?;
        if found.is_some_and(|found| found.is_directory) {
            let place = storage.shown(place);
            return Err(Trouble::Final(format!(
                "cannot move a part to {place}: a directory is in its place"
            )));
        }
    }
    let here: BTreeSet<&str> =
        names.iter().map(String::as_str).filter(|name| !is_remains(name.as_ref())).collect();
    let to_replace =
        parts.iter().map(|part| part.to.as_str()).chain([SUCCESS]).filter(|name| here.contains(name));
    let to_replace: Vec<String> = to_replace.map(str::to_owned).collect();
    let removed = older_files(storage, names, &parts)?;
    check_replaced(claim, to_replace.iter().chain(&removed))?;
    let intent = Intent { version: INTENT_VERSION, claim: token, parts, removed };
    let intent = serde_json::to_vec(&intent)
        .map_err(|error| Trouble::Final(format!("cannot write the intent of the commit: {error}")))?;
    let committed = paths.committed();
    storage.sync_directory(&committed).map_err(|error| failed("sync", storage, &committed, &error))?;
    for (path, bytes) in [(paths.staged_success(), text), (paths.intent(), intent)] {
        storage.replace(&path, &bytes).map_err(|error| failed("write", storage, &path, &error))?;
    }
    claim.verify()?;
    claim.advance()
}

/// Refuses to replace or remove a file that the job reads, by whatever name, or one that appeared in a directory whose
/// files are not to be overwritten.
fn check_replaced<'a>(
    claim: &DirectoryClaim,
    names: impl Iterator<Item = &'a String>,
) -> Result<(), Trouble> {
    let storage = claim.storage();
    let mut replaced: BTreeMap<FileId, &Path> = BTreeMap::new();
    for name in names.map(Path::new) {
        if !claim.overwrite() {
            let name = storage.shown(name);
            return Err(Trouble::Final(format!(
                "{name} appeared while the job ran; move it away, or replace it with --overwrite"
            )));
        }
        let found = storage.find(name).map_err(|error| failed("find", storage, name, &error))?;
        replaced.extend(found.map(|found| ((found.device, found.inode), name)));
    }
    if replaced.is_empty() {
        return Ok(());
    }
    for read in claim.reads() {
        if let Some(name) = file_id(read).and_then(|id| replaced.get(&id)) {
            let (name, read) = (storage.shown(name), read.display());
            return Err(Trouble::Final(format!(
                "{name} was not replaced: it is {read}, which the job reads; choose another output directory"
            )));
        }
    }
    Ok(())
}

/// What an older job wrote and this one does not: what its `_SUCCESS` lists, and what is called as only parts
/// are. No job writes a directory, whatever it is called.
fn older_files(
    storage: &Storage,
    names: BTreeSet<String>,
    parts: &[IntendedPart],
) -> Result<Vec<String>, Trouble> {
    let listed = read_success(storage)?.into_iter().flat_map(Written::files);
    let listed: BTreeSet<String> = listed.collect();
    let new: BTreeSet<&str> = parts.iter().map(|part| part.to.as_str()).collect();
    let goes = |name: &String| {
        let (text, name) = (name.as_str(), name.as_ref());
        !new.contains(text) && (listed.contains(text) || is_part(name) || is_unfinished_success(name))
    };
    let mut older = Vec::new();
    for name in names.into_iter().filter(goes) {
        let path = Path::new(&name);
        let found = storage.find(path).map_err(|error| failed("find", storage, path, &error))?;
        if found.is_some_and(|found| !found.is_directory) {
            older.push(name);
        }
    }
    Ok(older)
}

/// Carries out the recorded intent of a claim, as far as that was not done before.
pub(super) fn roll_forward(storage: &Storage, paths: &JobPaths, token: ClaimToken) -> Result<(), Trouble> {
    let (here, success) = (Path::new(""), Path::new(SUCCESS));
    let written = read_success(storage)?;
    if written.as_ref().is_some_and(|written| written.claim == Some(token)) {
        // Written last.
        return sync(storage);
    }
    let intent = read_intent(storage, paths, token)?;
    verify(storage, paths, token)?;
    if written.is_some() {
        storage.remove_file(success).map_err(|error| failed("remove", storage, success, &error))?;
        sync(storage)?;
    }
    let share = share_of(intent.parts.len(), MOVES_MIN);
    let moved = in_shares(&intent.parts, share, |parts| {
        parts.iter().try_for_each(|part| place(storage, paths, token, part))
    });
    moved.into_iter().collect::<Result<(), Trouble>>()?;
    for name in intent.removed.iter().map(Path::new) {
        storage.remove_file(name).map_err(|error| failed("remove", storage, name, &error))?;
    }
    storage.sync_directory(&paths.committed()).map_err(|error| failed("sync", storage, here, &error))?;
    sync(storage)?;
    verify(storage, paths, token)?;
    let staged = paths.staged_success();
    storage.rename(&staged, success).map_err(|error| failed("write", storage, success, &error))?;
    sync(storage)
}

fn sync(storage: &Storage) -> Result<(), Trouble> {
    let here = Path::new("");
    storage.sync_directory(here).map_err(|error| failed("sync", storage, here, &error))
}

/// The holder reads its token again before each step that cannot be taken back.
fn verify(storage: &Storage, paths: &JobPaths, token: ClaimToken) -> Result<(), Trouble> {
    match whose(storage, paths, token)? {
        Whose::Own(_) => Ok(()),
        Whose::Settled | Whose::Gone => {
            Err(Trouble::Final(format!("{} was removed while it was committed", storage.shown(paths.work()))))
        }
    }
}

fn read_intent(storage: &Storage, paths: &JobPaths, token: ClaimToken) -> Result<Intent, Trouble> {
    let path = paths.intent();
    let unusable = |what: String| {
        Trouble::Final(format!("cannot go on with the commit in {}: {what}", storage.shown(&path)))
    };
    let Some(text) = read(storage, &path)? else {
        // What was not found may only be away.
        verify(storage, paths, token)?;
        return Err(unusable("it is gone".to_owned()));
    };
    let intent: Intent = serde_json::from_slice(&text).map_err(|error| unusable(error.to_string()))?;
    if intent.version != INTENT_VERSION {
        let what = format!("it has version {}, and this program reads {INTENT_VERSION}", intent.version);
        return Err(unusable(what));
    }
    Ok(intent)
}

/// Moves a part to its place; fine if it is there.
fn place(storage: &Storage, paths: &JobPaths, token: ClaimToken, part: &IntendedPart) -> Result<(), Trouble> {
    let (from, to) = (paths.committed().join(&part.from), PathBuf::from(&part.to));
    let known = Found {
        is_file: true,
        is_directory: false,
        bytes: part.bytes,
        device: 0,
        inode: part.inode,
        modified: 0,
    };
    let error = match storage.rename_known(&from, &to, known) {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };
    let moving = || {
        let doing = format!("move {} to {}", storage.shown(&from), storage.shown(&to));
        Trouble::io(doing, &error)
    };
    if error.kind() != std::io::ErrorKind::NotFound {
        return Err(moving());
    }
    verify(storage, paths, token)?;
    let still = storage.find(&from).map_err(|error| failed("find", storage, &from, &error))?;
    let there = storage.find(&to).map_err(|error| failed("find", storage, &to, &error))?;
    Err(if still.is_some() { moving() } else { missing(storage, &to, part.bytes, there) })
}

pub(super) fn missing(storage: &Storage, path: &Path, bytes: u64, found: Option<Found>) -> Trouble {
    let found = found.map_or_else(|| "nothing".to_owned(), |found| format!("{} bytes", found.bytes));
    Trouble::Final(format!("cannot find a part of {bytes} bytes: {} is {found}", storage.shown(path)))
}

fn read_success(storage: &Storage) -> Result<Option<Written>, Trouble> {
    Written::read(storage).map_err(|error| failed("read", storage, Path::new(SUCCESS), &error))
}

fn read(storage: &Storage, path: &Path) -> Result<Option<Vec<u8>>, Trouble> {
    storage.read(path).map_err(|error| failed("read", storage, path, &error))
}

fn failed(doing: &str, storage: &Storage, path: &Path, error: &std::io::Error) -> Trouble {
    Trouble::io(format!("{doing} {}", storage.shown(path)), error)
}
