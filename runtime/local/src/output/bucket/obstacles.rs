//! Obstacles to a claim in a store: judges an older claim, finishes its commit, and writes the new claim.

use std::fs;
use std::path::Path;

use napreduce_protocol::PutCondition;

use super::super::holder::life_of;
use super::super::layout::JobPaths;
use super::super::obstacles::{LEASE_SECONDS, may_settle};
use super::super::record::{ClaimRecord, Owner, Step};
use super::super::request::ClaimRequest;
use super::super::trouble::{ClaimError, Trouble};
use super::commit::roll_forward;
use super::place::{Bucket, CLAIM, PROBE, is_remains, is_temporary};
use crate::process::Life;

/// After this many lost races, the output is reported as in use.
const TRIES_MAX: usize = 8;

/// Returns whether the output contains objects that are not temporary.
pub(super) fn is_occupied(bucket: &Bucket) -> Result<bool, Trouble> {
    Ok(bucket
        .objects()?
        .iter()
        .any(|(name, _)| !is_temporary(name)))
}

/// Rejects an output that is not empty, unless it may be overwritten, or that a run of this host writes to.
/// Changes nothing.
pub(crate) fn look(bucket: &Bucket, overwrite: bool) -> Result<(), ClaimError> {
    let record = bucket.get(CLAIM)?.and_then(|(text, _)| parse(&text));
    // A holder on another host is checked only when the output is claimed.
    let lives = |record: ClaimRecord| {
        let life = life_of(&bucket.world().process, &record.holder, record.token);
        life.is_ok_and(|life| life == Life::Alive)
    };
    if record.is_some_and(lives) {
        return Err(ClaimError::InUse);
    }
    if !overwrite && is_occupied(bucket)? {
        Err(ClaimError::Exists)
    } else {
        Ok(())
    }
}

/// Writes a claim, or returns the reason why it cannot.
pub(super) fn make_way(
    bucket: &Bucket,
    request: &ClaimRequest<'_>,
    record: &ClaimRecord,
) -> Result<(), ClaimError> {
    let text = record.text()?;
    for _ in 0..TRIES_MAX {
        let put = match bucket.get(CLAIM)? {
            None => {
                let objects = bucket.objects()?;
                if !request.overwrite && objects.iter().any(|(name, _)| !is_temporary(name)) {
                    return Err(ClaimError::Exists);
                }
                if !request.overwrite && objects.iter().any(|(name, _)| !is_remains(name)) {
                    return Err(ClaimError::Unfinished);
                }
                bucket.put(CLAIM, &text, PutCondition::Absent)
            }
            Some((older, found)) => {
                let older = parse(&older);
                if let Some(known) = &older
                    && is_in_use(bucket, request, known, found.modified)?
                {
                    return Err(ClaimError::InUse);
                }
                if !may_settle(older.as_ref(), request) {
                    let exists = is_occupied(bucket)? && !request.overwrite;
                    return Err(if exists {
                        ClaimError::Exists
                    } else {
                        ClaimError::Unfinished
                    });
                }
                if let Some(known) = &older {
                    finish(bucket, request, known)?;
                }
                bucket.put(CLAIM, &text, PutCondition::Version(&found.version))
            }
        };
        if put?.is_some() {
            return Ok(());
        }
    }
    Err(ClaimError::InUse)
}

/// Parses a claim; `None` if it is not readable.
fn parse(text: &[u8]) -> Option<ClaimRecord> {
    ClaimRecord::parse(text, Path::new(CLAIM)).ok()
}

fn is_in_use(
    bucket: &Bucket,
    request: &ClaimRequest<'_>,
    older: &ClaimRecord,
    renewed: i64,
) -> Result<bool, Trouble> {
    if request.others.contains(&older.token) {
        return Ok(true);
    }
    let life = life_of(&bucket.world().process, &older.holder, older.token);
    Ok(
        match life.map_err(|error| Trouble::io("look up the process of an older claim", &error))? {
            Life::Alive => true,
            Life::Dead => false,
            Life::Unknown => now(bucket, request)? - renewed < LEASE_SECONDS,
        },
    )
}

/// Returns the time of the store's clock. The clocks of two hosts may differ.
fn now(bucket: &Bucket, request: &ClaimRequest<'_>) -> Result<i64, Trouble> {
    let probe = format!("{PROBE}{:032x}", request.submission);
    bucket.put(&probe, b"", PutCondition::Always)?;
    let found = bucket.find(&probe);
    bucket.remove(&probe)?;
    Ok(found?.map_or(0, |found| found.modified))
}

/// Finishes a dead holder's commit if its intent is recorded. Removes its local files on this host.
fn finish(bucket: &Bucket, request: &ClaimRequest<'_>, older: &ClaimRecord) -> Result<(), Trouble> {
    if older.step == Step::Intent {
        match roll_forward(bucket, older.token) {
            // The uploads no longer exist, so the commit cannot be finished.
            Ok(()) | Err(Trouble::Final(_)) => {}
            Err(trouble) => return Err(trouble),
        }
    }
    if older.owner == Owner::Program {
        let work = JobPaths::new(request.output, older.job, older.token, "").local_work();
        // If the holder ran on another host, the directory does not exist here.
        let _ = fs::remove_dir_all(work);
    }
    Ok(())
}
