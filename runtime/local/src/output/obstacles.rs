//! Obstacles to a claim: judges an older claim, and finishes or undoes the work of a dead holder.

use std::fs::File;
use std::io;
use std::path::Path;

use napreduce_protocol::{ClaimToken, IoResult, JobError};

use super::holder::life_of;
use super::intent::roll_forward;
use super::layout::{JobPaths, TEMPORARY, claim_in, is_remains, retired, staged};
use super::record::{ClaimRecord, Owner, Step};
use super::removal::remove_retired;
use super::request::ClaimRequest;
use super::storage::{Locked, Storage};
use super::trouble::{Trouble, refused};
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
        lock: File,
        /// `None` if there is no readable claim.
        record: Option<ClaimRecord>,
    },
}

/// Examines a `_temporary` under any of its names.
fn standing(
    storage: &Storage,
    temporary: &Path,
    request: &ClaimRequest<'_>,
) -> io::Result<Option<OlderClaim>> {
    let lock = match storage.lock(temporary).if_there()? {
        Some(Locked::Now(lock)) => lock,
        Some(Locked::Busy) => return Ok(Some(OlderClaim::InUse)),
        None => return Ok(None),
    };
    let path = claim_in(temporary);
    let text = storage.read(&path)?;
    let record = text.and_then(|text| ClaimRecord::parse(&text, &path).ok());
    let Some(known) = &record else { return Ok(Some(OlderClaim::Left { lock, record })) };
    let in_use = match life_of(&known.holder, known.token)? {
        Life::Alive => true,
        Life::Dead => false,
        Life::Unknown => lease_age(storage, &path, request)? < LEASE_SECONDS,
    };
    Ok(Some(if in_use { OlderClaim::InUse } else { OlderClaim::Left { lock, record } }))
}

/// Returns the age of a claim's last renewal in seconds, by the storage's clock: the clocks of two hosts may
/// differ.
fn lease_age(storage: &Storage, claim: &Path, request: &ClaimRequest<'_>) -> io::Result<i64> {
    let probe = staged(request.submission);
    storage.make_directory(&probe)?;
    let now = storage.find(&probe);
    storage.remove_directory(&probe)?;
    let renewed = storage.find(claim)?.map_or(0, |found| found.modified);
    Ok(now?.map_or(0, |found| found.modified) - renewed)
}

/// Makes room for a claim, or returns the reason why it cannot. Returns how many directories an older claim
/// had created, which this one must remove.
pub(super) fn make_way(storage: &Storage, request: &ClaimRequest<'_>) -> Result<u32, JobError> {
    let path = || storage.path().display().to_string().trim_end_matches('/').to_owned();
    let unusable = |source| JobError::OutputUnusable { path: path(), source };
    let in_use = || JobError::OutputInUse { path: path() };
    let names = storage.names(Path::new("")).map_err(unusable)?;
    for name in names.iter().map(Path::new).filter(|name| is_remains(name.as_os_str())) {
        match standing(storage, name, request).map_err(unusable)? {
            // Another process is removing it.
            Some(OlderClaim::InUse) if name.extension().is_some_and(|old| old == "old") => {}
            Some(OlderClaim::InUse) => return Err(in_use()),
            // Unused or complete. A failed removal is harmless.
            Some(OlderClaim::Left { .. }) => drop(storage.remove_tree(name)),
            None => {}
        }
    }
    let mut made = 0;
    let mut unfinished = false;
    match standing(storage, Path::new(TEMPORARY), request).map_err(unusable)? {
        None => {}
        Some(OlderClaim::InUse) => return Err(in_use()),
        Some(OlderClaim::Left { lock, record }) => match may_go(record.as_ref(), request) {
            true => made = settle_left(storage, request, record, lock)?,
            false => unfinished = true,
        },
    }
    let is_foreign = |name: &std::ffi::OsString| *name != *TEMPORARY && !is_remains(name);
    let occupied = storage.names(Path::new("")).map_err(unusable)?.iter().any(is_foreign);
    match (occupied && !request.overwrite, unfinished) {
        (true, _) => Err(JobError::OutputExists { path: path() }),
        (false, true) => Err(JobError::OutputUnfinished { path: path() }),
        (false, false) => Ok(made),
    }
}

/// Returns whether this claim may finish or undo a dead holder's work. The work of a cluster belongs to its
/// next coordinator unless the request overrides this.
pub(super) fn may_go(record: Option<&ClaimRecord>, request: &ClaimRequest<'_>) -> bool {
    let known =
        |record: &ClaimRecord| record.submission == request.submission || record.owner == Owner::Program;
    request.overwrite || record.is_some_and(known)
}

/// Finishes a commit with a recorded intent; undoes any other.
fn settle_left(
    storage: &Storage,
    request: &ClaimRequest<'_>,
    record: Option<ClaimRecord>,
    _lock: File,
) -> Result<u32, JobError> {
    if let Some(record) = record.as_ref().filter(|record| record.step == Step::Intent) {
        let paths = JobPaths::new(storage.path(), record.job, record.token, "");
        match roll_forward(storage, &paths, record.token) {
            // The files to be moved no longer exist, so the commit cannot be finished.
            Ok(()) | Err(Trouble::Final(_)) => {}
            Err(trouble) => return Err(refused(storage.path(), trouble)),
        }
    }
    let token = record.as_ref().map(|record| record.token);
    let removed = set_aside(storage, token, request.submission)
        .and_then(|()| remove_retired(storage, request.submission).or(Ok(())));
    removed.map_err(|trouble| refused(storage.path(), trouble))?;
    Ok(record.map_or(0, |record| record.made))
}

/// Renames `_temporary` away, so that a process still working in it fails. Renames it back if it belongs to
/// another claim than `token`, since locks may not work between hosts.
pub(super) fn set_aside(
    storage: &Storage,
    token: Option<ClaimToken>,
    submission: u128,
) -> Result<(), Trouble> {
    let (temporary, retired) = (Path::new(TEMPORARY), retired(submission));
    let failed = |error: io::Error| Trouble::io(format!("remove {}", storage.shown(temporary)), &error);
    // From an interrupted earlier try.
    storage.remove_tree(&retired).map_err(failed)?;
    if storage.rename(temporary, &retired).if_there().map_err(failed)?.is_none() {
        return Ok(());
    }
    let path = claim_in(&retired);
    let found = storage.read(&path).map_err(failed)?;
    let found = found.and_then(|text| ClaimRecord::parse(&text, &path).ok());
    match found {
        Some(other) if Some(other.token) != token => {
            storage.rename(&retired, temporary).map_err(failed)?;
            Err(Trouble::Taken { by: other.to_string() })
        }
        _ => Ok(()),
    }
}
