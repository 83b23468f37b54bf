//! A check, without changes, whether a run could claim an output directory now.

use std::fs::{self, File};
use std::path::Path;

use napreduce_protocol::{IoResult, JobError, StorageScheme};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::bucket::{Bucket, look as look_in_store};
use super::layout::TEMPORARY;
use super::places::{Surroundings, check_place};
use super::trouble::{ClaimError, Trouble};

/// Rejects an output directory that is not empty, unless it may be overwritten, or that another run writes
/// to. Blocking.
///
/// Programs of several jobs call it before the first one, since only the last one claims the output.
///
/// # Errors
///
/// The errors of a claim: [`JobError::OutputRefused`], [`JobError::OutputExists`], [`JobError::OutputInUse`]
/// and [`JobError::OutputUnusable`].
pub fn check_output(output: &Path, overwrite: bool) -> Result<(), JobError> {
    check_place(output, &Surroundings::default())?;
    look(output, overwrite).map_err(|error| error.of(output))
}

fn look(output: &Path, overwrite: bool) -> Result<(), ClaimError> {
    if StorageScheme::of(output).is_some() {
        let bucket = Bucket::of(output).map_err(Trouble::Final)?;
        return look_in_store(&bucket, overwrite);
    }
    let Some(entries) = fs::read_dir(output).if_there()? else { return Ok(()) };
    let mut occupied = false;
    for entry in entries {
        let entry = entry?;
        if !entry.file_name().as_encoded_bytes().starts_with(TEMPORARY.as_bytes()) {
            occupied = true;
        } else if is_locked(&entry.path()) {
            return Err(ClaimError::InUse);
        }
    }
    if occupied && !overwrite { Err(ClaimError::Exists) } else { Ok(()) }
}

/// Returns whether another run holds the lock; false if the directory is missing or cannot be locked.
fn is_locked(temporary: &Path) -> bool {
    let locked = File::open(temporary).map(|file| flock(&file, FlockOperation::NonBlockingLockExclusive));
    matches!(locked, Ok(Err(Errno::WOULDBLOCK)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_reports_the_claim_error_without_changes() {
        let place = tempfile::tempdir().expect("a directory");
        let output = place.path().join("out");
        check_output(&output, false).expect("it is missing");
        assert!(!output.exists());
        fs::create_dir(&output).expect("made");
        check_output(&output, false).expect("it is empty");
        fs::create_dir(output.join(TEMPORARY)).expect("made");
        check_output(&output, false).expect("no other run writes to it");
        let lock = File::open(output.join(TEMPORARY)).expect("a directory");
        flock(&lock, FlockOperation::LockExclusive).expect("locked");
        for overwrite in [false, true] {
            let refused = check_output(&output, overwrite).expect_err("another run writes to it");
            assert!(matches!(refused, JobError::OutputInUse { .. }), "{refused}");
        }
        drop(lock);
        fs::write(output.join("_SUCCESS"), "").expect("written");
        let refused = check_output(&output, false).expect_err("there is an output");
        assert!(matches!(refused, JobError::OutputExists { .. }), "{refused}");
        check_output(&output, true).expect("it may be overwritten");
        let refused = check_output(&output.join("_SUCCESS"), true).expect_err("it is a file");
        assert!(matches!(refused, JobError::OutputUnusable { .. }), "{refused}");
    }
}
