//! The lease of an output: other hosts take over a claim that was not renewed for a minute. A coordinator renews the
//! leases of its jobs; a program without one keeps the lease by a thread.

use std::path::{Path, PathBuf};
use std::time::Duration;

use napreduce_protocol::{ClaimToken, JobError};
use tokio::sync::oneshot;
use tokio::time::interval;

use super::choice::renew_lease;
use super::storage::Disk;
use crate::world::World;

/// Interval of the renewals of a lease; a quarter of the time after which it expires.
pub(crate) const RENEWAL: Duration = Duration::from_secs(15);

/// Renews the lease of a claim until it is dropped.
#[derive(Debug)]
pub(super) struct KeptLease {
    _held: oneshot::Sender<()>,
}

impl KeptLease {
    /// Starts the thread that renews the lease.
    ///
    /// # Errors
    /// Fails if no thread can be started.
    pub(super) fn start(output: &Path, token: ClaimToken) -> Result<KeptLease, JobError> {
        let (held, released) = oneshot::channel();
        World::real()
            .tasks
            .spawn_on_thread("lease", keep(output.to_owned(), token, released))
            .map_err(|error| JobError::io("start a thread", error))?;
        Ok(KeptLease { _held: held })
    }
}

async fn keep(output: PathBuf, token: ClaimToken, mut released: oneshot::Receiver<()>) {
    let mut renewals = interval(RENEWAL);
    loop {
        tokio::select! {
            _ = &mut released => return,
            _ = renewals.tick() => {
                // The next step of the job meets the same error and reports it.
                let _ = renew_lease(&Disk::default(), &output, token);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::SystemTime;

    use tokio::time::advance;

    use super::super::OutputReservation;
    use super::super::layout::{TEMPORARY, claim_in};
    use super::super::record::ClaimRecord;
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn lease_is_renewed_until_it_is_released() {
        let place = tempfile::tempdir().expect("a directory");
        let output = place.path().join("out");
        let _reserved = OutputReservation::take(&output, false).expect("it is missing");
        let path = output.join(claim_in(Path::new(TEMPORARY)));
        let text = fs::read(&path).expect("a claim");
        let record = ClaimRecord::parse(&text, &path).expect("a claim");
        let make_old = || {
            let file = fs::File::options().write(true).open(&path).expect("a file");
            file.set_modified(SystemTime::UNIX_EPOCH).expect("set");
        };
        let is_old = || {
            let modified = fs::metadata(&path).and_then(|found| found.modified());
            modified.expect("a time") == SystemTime::UNIX_EPOCH
        };
        let (held, released) = oneshot::channel();
        let keeping = World::real()
            .tasks
            .spawn(keep(output.clone(), record.token, released));
        for _ in 0..3 {
            make_old();
            advance(RENEWAL).await;
            tokio::task::yield_now().await;
            assert!(!is_old());
        }
        drop(held);
        keeping.await.expect("it ends");
    }
}
