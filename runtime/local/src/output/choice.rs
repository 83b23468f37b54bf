//! Chooses the kind of an output: a directory or a store.

use std::path::Path;

use napreduce_protocol::{ClaimToken, JobError, StorageScheme};

use super::backend::{OutputBackend, OutputClaim, Resumed};
use super::bucket::{Bucket, named_by_coordinator};
use super::places::{Protected, check_place};
use super::request::{ClaimMark, ClaimRequest};
use super::storage::Disk;
use super::trouble::{ClaimError, Trouble};

fn backend_of(disk: &Disk, output: &Path) -> Result<Box<dyn OutputBackend>, Trouble> {
    Ok(match StorageScheme::from_path(output) {
        None => Box::new(disk.clone()),
        Some(_) => Box::new(Bucket::for_output(disk.world(), output).map_err(Trouble::Final)?),
    })
}

/// Rejects an output that is not empty, unless it may be overwritten, or that another run writes to.
/// Blocking.
///
/// Programs of several jobs call it before the first one, since only the last one claims the output.
///
/// # Errors
///
/// The errors of a claim: [`JobError::OutputRefused`], [`JobError::OutputExists`], [`JobError::OutputInUse`]
/// and [`JobError::OutputUnusable`].
pub fn check_output(output: &Path, overwrite: bool) -> Result<(), JobError> {
    check_place(output, &Protected::default())?;
    let backend = backend_of(&Disk::default(), output).map_err(ClaimError::from);
    let checked = backend.and_then(|backend| backend.check(output, overwrite));
    checked.map_err(|error| error.into_job_error(output))
}

/// Claims an output; fails if existing content forbids it.
pub fn take_output(
    disk: &Disk,
    request: &ClaimRequest<'_>,
) -> Result<Box<dyn OutputClaim>, JobError> {
    match backend_of(disk, request.output) {
        Ok(backend) => backend.take(request),
        Err(trouble) => Err(named_by_coordinator(
            ClaimError::from(trouble).into_job_error(request.output),
            request.owner,
        )),
    }
}

/// Resumes a claim of an earlier process, or of this one before the storage was unreachable. Creates nothing.
pub(crate) fn resume_output(
    disk: &Disk,
    request: &ClaimRequest<'_>,
    mark: ClaimMark,
) -> Result<Resumed<dyn OutputClaim>, Trouble> {
    backend_of(disk, request.output)?.resume(request, mark)
}

/// Renews the lease of a claim; must be called every [`RENEWAL`](super::RENEWAL) until the output is settled. Blocking.
pub(crate) fn renew_lease(disk: &Disk, output: &Path, token: ClaimToken) -> Result<(), Trouble> {
    backend_of(disk, output)?.renew(output, token)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::super::layout::TEMPORARY;
    use super::*;
    use crate::locked_file::try_lock;

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
        let temporary = File::open(output.join(TEMPORARY)).expect("a directory");
        let lock = try_lock(temporary).expect("a file system with locks");
        for overwrite in [false, true] {
            let refused = check_output(&output, overwrite).expect_err("another run writes to it");
            assert!(matches!(refused, JobError::OutputInUse { .. }), "{refused}");
        }
        drop(lock);
        fs::write(output.join("_SUCCESS"), "").expect("written");
        let refused = check_output(&output, false).expect_err("there is an output");
        assert!(
            matches!(refused, JobError::OutputExists { .. }),
            "{refused}"
        );
        check_output(&output, true).expect("it may be overwritten");
        let refused = check_output(&output.join("_SUCCESS"), true).expect_err("it is a file");
        assert!(
            matches!(refused, JobError::OutputUnusable { .. }),
            "{refused}"
        );
    }
}
