//! Reserves an output directory for a job that the program will run later. A thread renews the lease meanwhile.
//! Another run can take the directory between the release and the job's claim.

use std::path::{Path, PathBuf};

use napreduce_engine::JobId;
use napreduce_protocol::{ClaimToken, JobError};
use tokio::sync::oneshot;
use tokio::time::interval;

use super::backend::OutputClaim;
use super::choice::{RENEWAL, renew_lease, take_output};
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
    /// Ends the renewals when it is dropped.
    _held: oneshot::Sender<()>,
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
        let token = claim.mark().token;
        let (held, released) = oneshot::channel();
        let reservation = OutputReservation {
            output: output.to_owned(),
            claim: Some(claim),
            _held: held,
        };
        World::real()
            .tasks
            .spawn_on_thread("lease", keep_lease(output.to_owned(), token, released))
            .map_err(|error| JobError::io("start a thread", error))?;
        Ok(reservation)
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

/// Renews the lease of a claim until it is released.
async fn keep_lease(output: PathBuf, token: ClaimToken, mut released: oneshot::Receiver<()>) {
    let mut renewals = interval(RENEWAL);
    loop {
        tokio::select! {
            _ = &mut released => return,
            _ = renewals.tick() => {
                // The claim of the last job meets the same error and reports it.
                let _ = renew_lease(&Disk::default(), &output, token);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::{Duration, SystemTime};

    use tokio::time::advance;

    use super::super::layout::{TEMPORARY, claim_in};
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn lease_of_reservation_is_renewed_until_it_is_released() {
        let place = tempfile::tempdir().expect("a directory");
        let output = place.path().join("out");
        let reserved = OutputReservation::take(&output, false).expect("it is missing");
        let token = reserved.claim.as_ref().expect("a claim").mark().token;
        let record = output.join(claim_in(Path::new(TEMPORARY)));
        let make_old = || {
            let file = fs::File::options()
                .write(true)
                .open(&record)
                .expect("a file");
            let before = SystemTime::now() - Duration::from_secs(100);
            file.set_modified(before).expect("set");
        };
        let is_old = || {
            let modified = fs::metadata(&record).and_then(|found| found.modified());
            let age = modified.expect("a time").elapsed().unwrap_or_default();
            age >= Duration::from_secs(100)
        };
        let (held, released) = oneshot::channel();
        let keeping = tokio::spawn(keep_lease(output.clone(), token, released));
        for _ in 0..3 {
            make_old();
            advance(RENEWAL).await;
            tokio::task::yield_now().await;
            assert!(!is_old());
        }
        drop(held);
        keeping.await.expect("it ends");
    }

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
