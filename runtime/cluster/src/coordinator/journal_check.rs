//! A journal looked at: what it holds, and whether a coordinator could go on from it.
//!
//! Owns what is said of it. Nothing is changed: a torn end is left as it is. Does not own the way back to a
//! coordinator's state (`recovery`).

use std::path::Path;

use napreduce_engine::ReadPolicy;
use napreduce_protocol::JobSummary;

use super::recovery::{RecoveryError, replay};
use super::replay::ReplayError;
use crate::journal::Journal;

/// What the journal of a coordinator holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalCheck {
    /// The scheduler by which it was decided last.
    pub scheduler: String,
    /// When it was begun, in milliseconds since 1970.
    pub begun_millis: u64,
    /// When its last entry was written, likewise.
    pub last_millis: u64,
    /// Whether there is a snapshot of what was before the entries.
    pub has_snapshot: bool,
    /// Entries since the snapshot, or since it was begun.
    pub entries: usize,
    /// Workers that a coordinator would expect back.
    pub workers: usize,
    /// Jobs that have not ended, newest first.
    pub jobs: Vec<JobSummary>,
    /// What a coordinator would leave out of it, for people.
    pub remarks: Vec<String>,
}

/// Reads the journal in the directory of a coordinator (`DIR/coordinator`, or a copy of it) to its end, as a
/// coordinator does that is started there, and changes nothing. One may be writing there meanwhile.
///
/// # Errors
/// When there is none, or when it is damaged: with the file, the byte and what to do. Also when it is of
/// another version.
pub fn check_journal(directory: &Path, read_policy: ReadPolicy) -> Result<JournalCheck, ReplayError> {
    let read = Journal::read(directory)?;
    let (header, mut recovered) =
        read.ok_or_else(|| ReplayError::NoJournal(directory.display().to_string()))?;
    let remarks = std::mem::take(&mut recovered.remarks);
    let (has_snapshot, entries) = (recovered.snapshot.is_some(), recovered.entries.len());
    let state = replay(directory, recovered, &header, read_policy, |state| state)
        .map_err(|error: RecoveryError| ReplayError::Recovery(error.to_string()))?;
    let view = state.view();
    Ok(JournalCheck {
        scheduler: state.policy.clone(),
        begun_millis: header.epoch_micros / 1_000,
        last_millis: state.unix_micros() / 1_000,
        has_snapshot,
        entries,
        workers: state.links.len(),
        jobs: state.jobs.values().rev().map(|job| job.summary(&view)).collect(),
        remarks,
    })
}
