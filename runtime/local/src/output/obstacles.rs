//! Obstacles to a claim: judges an older claim, and finishes or undoes the work of a dead holder.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use napreduce_protocol::{ClaimToken, IoResult};

use super::holder::life_of;
use super::intent::roll_forward;
use super::layout::{JobPaths, TEMPORARY, claim_in, is_remains, retired, staged};
use super::record::{ClaimRecord, Owner, Step};
use super::removal::remove_retired;
use super::request::ClaimRequest;
use super::storage::{Storage, StorageError};
use super::trouble::{ClaimError, Trouble};
use crate::locked_file::{LockedFile, Locking, try_lock};
use crate::process::Life;

/// A holder on another host that has not renewed its claim for this time has lost it. In seconds.
pub(super) const LEASE_SECONDS: i64 = 60;

/// An older claim.
#[derive(Debug)]
pub(super) enum OlderClaim {
    InUse,
    /// The holder is dead.
    Left {
        /// Held while the old claim is settled, so that no other process does the same.
        lock: LockedFile,
        /// `None` if there is no readable claim.
        record: Option<ClaimRecord>,
    },
}

/// Examines a `_temporary` under any of its names.
fn find_older(
    storage: &Storage,
    temporary: &Path,
    request: &ClaimRequest<'_>,
) -> Result<Option<OlderClaim>, ClaimError> {
    let lock = match storage.lock(temporary) {
        Ok(Locking::Held(lock)) => lock,
        Ok(Locking::Busy) => return Ok(Some(OlderClaim::InUse)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let path = claim_in(temporary);
    let text = storage.read(&path)?;
    let record = text.and_then(|text| ClaimRecord::parse(&text, &path).ok());
    let Some(known) = &record else {
        return Ok(Some(OlderClaim::Left { lock, record }));
    };
    if request.others.contains(&known.token) {
        return Ok(Some(OlderClaim::InUse));
    }
    let in_use = match life_of(&storage.world().process, &known.holder, known.token)? {
        Life::Alive => true,
        Life::Dead => false,
        Life::Unknown => lease_age(storage, &path, request)? < LEASE_SECONDS,
    };
    Ok(Some(if in_use {
        OlderClaim::InUse
    } else {
        OlderClaim::Left { lock, record }
    }))
}

/// Returns the age of a claim's last renewal in seconds, by the storage's clock: the clocks of two hosts may
/// differ.
fn lease_age(
    storage: &Storage,
    claim: &Path,
    request: &ClaimRequest<'_>,
) -> Result<i64, StorageError> {
    let probe = staged(request.submission);
    storage.make_directory(&probe)?;
    let now = storage.find(&probe);
    storage.remove_directory(&probe)?;
    let renewed = storage.find(claim)?.map_or(0, |found| found.modified);
    Ok(now?.map_or(0, |found| found.modified) - renewed)
}

/// Rejects a directory that is not empty, unless it may be overwritten, or that another run writes to. Changes
/// nothing.
pub(super) fn look(output: &Path, overwrite: bool) -> Result<(), ClaimError> {
    let Some(entries) = fs::read_dir(output).if_there()? else {
        return Ok(());
    };
    let mut is_occupied = false;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        if !name.as_encoded_bytes().starts_with(TEMPORARY.as_bytes()) {
            is_occupied = true;
        } else if is_locked(&entry.path()) {
            return Err(ClaimError::InUse);
        }
    }
    if is_occupied && !overwrite {
        return Err(ClaimError::Exists);
    }
    Ok(())
}

/// Returns whether another run holds the lock; false if the directory is missing or cannot be locked.
fn is_locked(temporary: &Path) -> bool {
    let Ok(file) = File::open(temporary) else {
        return false;
    };
    matches!(try_lock(file), Ok(Locking::Busy))
}

/// Makes room for a claim, or returns the reason why it cannot. Returns how many directories an older claim
/// had created, which this one must remove.
pub(super) fn make_way(storage: &Storage, request: &ClaimRequest<'_>) -> Result<u32, ClaimError> {
    let names = storage.names(Path::new(""))?;
    for name in names.iter().filter(|name| is_remains(name)) {
        let name = Path::new(name);
        match find_older(storage, name, request)? {
            // Another process is removing it.
            Some(OlderClaim::InUse) if name.extension() == Some(OsStr::new("old")) => {}
            Some(OlderClaim::InUse) => return Err(ClaimError::InUse),
            // Unused or complete. A failed removal is harmless.
            Some(OlderClaim::Left { .. }) => {
                let _ = storage.remove_tree(name);
            }
            None => {}
        }
    }
    let mut made = 0;
    let mut is_unfinished = false;
    match find_older(storage, Path::new(TEMPORARY), request)? {
        None => {}
        Some(OlderClaim::InUse) => return Err(ClaimError::InUse),
        Some(OlderClaim::Left { lock, record }) => {
            if may_settle(record.as_ref(), request) {
                made = settle_left(storage, request, record, lock)?;
            } else {
                is_unfinished = true;
            }
        }
    }
    let names = storage.names(Path::new(""))?;
    let is_occupied = names
        .iter()
        .any(|name| name != TEMPORARY && !is_remains(name));
    if is_occupied && !request.overwrite {
        return Err(ClaimError::Exists);
    }
    if is_unfinished {
        return Err(ClaimError::Unfinished);
    }
    Ok(made)
}

/// Returns whether this claim may finish or undo a dead holder's work. The work of a cluster belongs to its
/// next coordinator unless the request overrides this.
pub(super) fn may_settle(record: Option<&ClaimRecord>, request: &ClaimRequest<'_>) -> bool {
    if request.overwrite {
        return true;
    }
    match record {
        Some(record) => record.submission == request.submission || record.owner == Owner::Program,
        None => false,
    }
}

/// Finishes a commit with a recorded intent; undoes any other.
fn settle_left(
    storage: &Storage,
    request: &ClaimRequest<'_>,
    record: Option<ClaimRecord>,
    _lock: LockedFile,
) -> Result<u32, Trouble> {
    if let Some(record) = &record
        && record.step == Step::Intent
    {
        let paths = JobPaths::new(storage.path(), record.job, record.token, "");
        match roll_forward(storage, &paths, record.token) {
            // The files to be moved no longer exist, so the commit cannot be finished.
            Ok(()) | Err(Trouble::Final(_)) => {}
            Err(trouble) => return Err(trouble),
        }
    }
    let token = record.as_ref().map(|record| record.token);
    set_aside(storage, token, request.submission)?;
    // The output does not depend on what is left.
    let _ = remove_retired(storage, request.submission);
    Ok(record.map_or(0, |record| record.made))
}

/// Renames `_temporary` away, so that a process still working in it fails. Renames it back if it belongs to
/// another claim than `token`, since locks may not work between hosts.
pub(super) fn set_aside(
    storage: &Storage,
    token: Option<ClaimToken>,
    submission: u128,
) -> Result<(), Trouble> {
    let temporary = Path::new(TEMPORARY);
    let retired = retired(submission);
    // From an interrupted earlier try.
    storage.remove_tree(&retired)?;
    match storage.rename(temporary, &retired) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        renamed => renamed?,
    }
    let path = claim_in(&retired);
    let found = storage.read(&path)?;
    let found = found.and_then(|text| ClaimRecord::parse(&text, &path).ok());
    match found {
        Some(other) if Some(other.token) != token => {
            storage.rename(&retired, temporary)?;
            Err(Trouble::Taken {
                by: other.to_string(),
            })
        }
        _ => Ok(()),
    }
}
