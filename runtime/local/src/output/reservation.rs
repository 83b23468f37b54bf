//! Reserves an output directory for a job that the program will run later. Another run can take it between
//! the release and the job's claim.

use std::path::{Path, PathBuf};

use napreduce_engine::JobId;
use napreduce_protocol::JobError;

use super::backend::OutputClaim;
use super::choice::take_output;
use super::lease::KeptLease;
use super::places::{Protected, check_place};
use super::record::Owner;
use super::request::ClaimRequest;
use super::storage::Disk;
use super::trouble::ClaimError;
use crate::world::World;

/// The job id in the record of a reservation.
const NO_JOB: JobId = JobId(0);

/// A reserved output directory. Until it is dropped, no other run can claim the directory.
#[derive(Debug)]
pub struct OutputReservation {
    output: PathBuf,
    claim: Option<Box<dyn OutputClaim>>,
    _lease: KeptLease,
}

impl OutputReservation {
    /// Claims a directory and creates it if it is missing. Existing content is unchanged. Blocking.
    ///
    /// # Errors
    /// The errors of a claim: [`JobError::OutputRefused`], [`JobError::OutputExists`],
    /// [`JobError::OutputInUse`], [`JobError::OutputUnfinished`] and [`JobError::OutputUnusable`].
    pub fn take(output: &Path, overwrite: bool) -> Result<OutputReservation, JobError> {
        let submission = World::real()
            .random
            .token()
            .map_err(|error| JobError::io("draw a random number", error))?;
        check_place(output, &Protected::default())?;
        let request = ClaimRequest {
            output,
            job: NO_JOB,
            extension: "",
            overwrite,
            others: &[],
            splits: &[],
            submission,
            owner: Owner::Program,
            durable: false,
        };
        let claim = take_output(&Disk::default(), &request)?;
        let lease = KeptLease::start(output, claim.mark().token)?;
        Ok(OutputReservation {
            output: output.to_owned(),
            claim: Some(claim),
            _lease: lease,
        })
    }

    /// Releases the directory so that the job can claim it; removes all files of the reservation. Blocking.
    ///
    /// # Errors
    /// Fails if a file of the reservation cannot be removed.
    pub fn give_back(mut self) -> Result<(), JobError> {
        let Some(claim) = self.claim.take() else {
            return Ok(());
        };
        claim
            .discard()
            .map_err(|trouble| ClaimError::from(trouble).into_job_error(&self.output))
    }
}

impl Drop for OutputReservation {
    fn drop(&mut self) {
        if let Some(claim) = self.claim.take() {
            // The next run in this directory removes the remaining files; the claim is no longer held.
            let _ = claim.discard();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn reserved_output_is_exclusive_and_leaves_nothing() {
        let place = tempfile::tempdir().expect("a directory");
        let output = place.path().join("deep/out");
        let reserved = OutputReservation::take(&output, false).expect("it is missing");
        for overwrite in [false, true] {
            let refused = OutputReservation::take(&output, overwrite).expect_err("it is reserved");
            assert!(matches!(refused, JobError::OutputInUse { .. }), "{refused}");
        }
        reserved.give_back().expect("it is ours");
        assert!(!place.path().join("deep").exists());
        fs::create_dir_all(&output).expect("made");
        fs::write(output.join("part-r-00000"), "old").expect("written");
        let refused = OutputReservation::take(&output, false).expect_err("there is an output");
        assert!(
            matches!(refused, JobError::OutputExists { .. }),
            "{refused}"
        );
        drop(OutputReservation::take(&output, true).expect("it may be overwritten"));
        let left: Vec<_> = fs::read_dir(&output)
            .expect("a directory")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        assert_eq!(left, ["part-r-00000"]);
    }
}
