//! Checks a journal: lists its content and whether a coordinator could recover from it. Read-only: a torn
//! tail is left in place.

use std::path::Path;

use napreduce_engine::ReadPolicy;
use napreduce_local::world::disk::RealDisk;
use napreduce_protocol::JobSummary;

use super::recovery::{RecoveryError, replay};
use super::replay::ReplayError;
use crate::journal::Journal;

/// The content of a coordinator's journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalCheck {
    /// The last scheduler.
    pub scheduler: String,
    /// Creation time, in milliseconds since 1970.
    pub begun_millis: u64,
    /// Time of the last entry, in milliseconds since 1970.
    pub last_millis: u64,
    /// Whether a snapshot precedes the entries.
    pub has_snapshot: bool,
    /// Entries since the snapshot or the creation.
    pub entries: usize,
    /// Workers that a coordinator would expect to return.
    pub workers: usize,
    /// Unfinished jobs, newest first.
    pub jobs: Vec<JobSummary>,
    /// Data that a coordinator would ignore, as messages for people.
    pub remarks: Vec<String>,
}

/// Reads the journal in a coordinator's directory (`DIR/coordinator`, or a copy) as a starting coordinator
/// does, without changing it. A coordinator may be running.
///
/// # Errors
/// Fails if there is no journal, it is damaged (with file, offset and remedy), or it has another version.
pub fn check_journal(
    directory: &Path,
    read_policy: ReadPolicy,
) -> Result<JournalCheck, ReplayError> {
    let read = Journal::read(&RealDisk, directory)?;
    let (header, mut recovered) =
        read.ok_or_else(|| ReplayError::NoJournal(directory.display().to_string()))?;
    let remarks = std::mem::take(&mut recovered.remarks);
    let has_snapshot = recovered.snapshot.is_some();
    let entries = recovered.entries.len();
    let state = replay(directory, recovered, &header, read_policy, |state| state)
        .map_err(|error: RecoveryError| ReplayError::Recovery(error.to_string()))?;
    Ok(JournalCheck {
        scheduler: state.policy().to_owned(),
        begun_millis: header.epoch_micros / 1_000,
        last_millis: state.unix_micros() / 1_000,
        has_snapshot,
        entries,
        workers: state.links().len(),
        jobs: state
            .jobs()
            .values()
            .rev()
            .map(|job| job.summary(state.engine(), state.last()))
            .collect(),
        remarks,
    })
}
