//! A journal gone through again, with everything that was decided by it.
//!
//! Owns the reading of a cluster directory that another process may be writing. Does not own a change of
//! anything: a torn end is left as it is.

use std::sync::{Arc, PoisonError};

use napreduce_engine::ReadPolicy;
use napreduce_local::coordinator::{CoordinatorState, Recording, ReplayedBatch};
use thiserror::Error;

use super::recovery::{RecoveryError, replay};
use crate::cluster_directory::ClusterDirectory;
use crate::journal::{Journal, JournalError};

/// A journal cannot be gone through again.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// Nothing was ever written there.
    #[error("{0} holds no journal of a coordinator; name the directory of a cluster that was used")]
    NoJournal(String),
    /// It cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// It can be read, but no coordinator could go on from it.
    #[error("{0}")]
    Recovery(String),
}

/// What the coordinator of a cluster decided since its journal's last snapshot, found anew: the same engine
/// under the same rules is given the same events.
///
/// # Errors
/// When there is no journal, or it is damaged, or of another version.
pub fn replay_journal(
    directory: &ClusterDirectory,
    read_policy: ReadPolicy,
) -> Result<Vec<ReplayedBatch>, ReplayError> {
    let directory = directory.coordinator_directory();
    let read = Journal::read(&directory)?;
    let (header, recovered) = read.ok_or_else(|| ReplayError::NoJournal(directory.display().to_string()))?;
    let recording = Recording::default();
    let record = |mut state: CoordinatorState| {
        state.recorded = Some(Arc::clone(&recording));
        state
    };
    replay(&directory, recovered, &header, read_policy, record)
        .map_err(|error: RecoveryError| ReplayError::Recovery(error.to_string()))?;
    let mut recorded = recording.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(std::mem::take(&mut *recorded))
}
