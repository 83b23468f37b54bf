//! Replays a journal with all its decisions. Read-only, since another process may be writing: a torn tail is
//! left in place.

use std::sync::Arc;

use napreduce_engine::ReadPolicy;
use napreduce_local::coordinator::{CoordinatorState, Recording, ReplayedBatch};
use napreduce_protocol::lock;
use thiserror::Error;

use super::recovery::{RecoveryError, replay};
use crate::cluster_directory::ClusterDirectory;
use crate::journal::{Journal, JournalError};

/// An error of replaying a journal.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// The directory has no journal.
    #[error("no coordinator journal in {0}; name the directory of a cluster that has run")]
    NoJournal(String),
    /// The journal is not readable.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The journal is readable, but a coordinator could not recover from it.
    #[error("{0}")]
    Recovery(String),
}

/// Recomputes the decisions since the journal's last snapshot by giving the same events to the same engine
/// with the same rules.
///
/// # Errors
/// Fails if there is no journal, it is damaged, or it has another version.
pub fn replay_journal(
    directory: &ClusterDirectory,
    read_policy: ReadPolicy,
) -> Result<Vec<ReplayedBatch>, ReplayError> {
    let disk = directory.disk();
    let directory = directory.coordinator_directory();
    let read = Journal::read(&**disk, &directory)?;
    let (header, recovered) =
        read.ok_or_else(|| ReplayError::NoJournal(directory.display().to_string()))?;
    let recording = Recording::default();
    let record = |mut state: CoordinatorState| {
        state.record(Some(Arc::clone(&recording)));
        state
    };
    replay(&directory, recovered, &header, read_policy, record)
        .map_err(|error: RecoveryError| ReplayError::Recovery(error.to_string()))?;
    let mut recorded = lock(&recording);
    Ok(std::mem::take(&mut *recorded))
}
