//! The recorded intent of a commit; any process can carry out its remaining steps.

use std::path::{Path, PathBuf};

use napreduce_protocol::ClaimToken;
use serde::{Deserialize, Serialize};

use super::layout::{JobPaths, SUCCESS};
use super::manifest::SuccessFile;
use super::removal::{in_shares, share_of};
use super::storage::{Found, Storage};
use super::trouble::Trouble;
use super::whose::{Whose, whose};

/// Version of `intent.json`.
pub(super) const INTENT_VERSION: u32 = 1;
/// Minimum moves per thread; fewer do not justify a thread.
const MOVES_MIN: usize = 128;

/// The intent of a commit.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Intent {
    pub(super) version: u32,
    pub(super) claim: ClaimToken,
    pub(super) parts: Vec<IntendedPart>,
    /// Files of an older job to be removed.
    pub(super) removed: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct IntendedPart {
    /// Its file name in `committed`.
    pub(super) from: String,
    /// Its file name in the output directory.
    pub(super) to: String,
    pub(super) bytes: u64,
    pub(super) inode: u64,
}

/// Carries out the remaining steps of a claim's recorded intent.
pub(super) fn roll_forward(
    storage: &Storage,
    paths: &JobPaths,
    token: ClaimToken,
) -> Result<(), Trouble> {
    let here = Path::new("");
    let success = Path::new(SUCCESS);
    let written = SuccessFile::read(storage)?;
    if written
        .as_ref()
        .is_some_and(|written| written.claim == Some(token))
    {
        // `_SUCCESS` is written last, so the commit is complete.
        return Ok(storage.sync_directory(here)?);
    }
    let intent = read_intent(storage, paths, token)?;
    verify(storage, paths, token)?;
    if written.is_some() {
        storage.remove_file(success)?;
        storage.sync_directory(here)?;
    }
    let share = share_of(intent.parts.len(), MOVES_MIN);
    let moved = in_shares(&intent.parts, share, |parts| {
        parts
            .iter()
            .try_for_each(|part| place(storage, paths, token, part))
    });
    moved.into_iter().collect::<Result<(), Trouble>>()?;
    for name in &intent.removed {
        storage.remove_file(Path::new(name))?;
    }
    storage.sync_directory(&paths.committed())?;
    storage.sync_directory(here)?;
    verify(storage, paths, token)?;
    storage.rename(&paths.staged_success(), success)?;
    Ok(storage.sync_directory(here)?)
}

/// Checks that the claim still belongs to this run.
fn verify(storage: &Storage, paths: &JobPaths, token: ClaimToken) -> Result<(), Trouble> {
    match whose(storage, paths, token)? {
        Whose::Own(_) => Ok(()),
        Whose::Settled | Whose::Gone => Err(Trouble::Final(format!(
            "{} was removed during the commit",
            storage.shown(paths.work())
        ))),
    }
}

fn read_intent(storage: &Storage, paths: &JobPaths, token: ClaimToken) -> Result<Intent, Trouble> {
    let path = paths.intent();
    let unusable = |what: String| {
        Trouble::Final(format!(
            "cannot continue the commit in {}: {what}",
            storage.shown(&path)
        ))
    };
    let Some(text) = storage.read(&path)? else {
        // The file may be missing because another run took the claim or the storage is unreachable.
        verify(storage, paths, token)?;
        return Err(unusable("the file is missing".to_owned()));
    };
    let intent: Intent =
        serde_json::from_slice(&text).map_err(|error| unusable(error.to_string()))?;
    if intent.version != INTENT_VERSION {
        let what = format!(
            "it has version {}, but this program reads {INTENT_VERSION}",
            intent.version
        );
        return Err(unusable(what));
    }
    Ok(intent)
}

/// Moves a part to its place; succeeds if it was moved before.
fn place(
    storage: &Storage,
    paths: &JobPaths,
    token: ClaimToken,
    part: &IntendedPart,
) -> Result<(), Trouble> {
    let from = paths.committed().join(&part.from);
    let to = PathBuf::from(&part.to);
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
    if error.kind() != std::io::ErrorKind::NotFound {
        return Err(error.into());
    }
    verify(storage, paths, token)?;
    let still = storage.find(&from)?;
    let there = storage.find(&to)?;
    Err(if still.is_some() {
        error.into()
    } else {
        missing(storage, &to, part.bytes, there)
    })
}

pub(super) fn missing(storage: &Storage, path: &Path, bytes: u64, found: Option<Found>) -> Trouble {
    let found = found.map_or_else(
        || "missing".to_owned(),
        |found| format!("{} bytes long", found.bytes),
    );
    Trouble::Final(format!(
        "cannot find a part of {bytes} bytes: {} is {found}",
        storage.shown(path)
    ))
}
