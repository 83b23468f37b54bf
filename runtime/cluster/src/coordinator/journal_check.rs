//! Checks a journal: lists its content up to its first damage, and what is lost after it. Read-only: a torn
//! tail is left in place.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use napreduce_engine::{JobId, ReadPolicy};
use napreduce_local::coordinator::{CoordinatorState, Entry, Extra};
use napreduce_local::world::disk::RealDisk;
use napreduce_protocol::JobSummary;

use super::recovery::{RecoveryError, replay};
use super::replay::ReplayError;
use crate::journal::{Header, Survey, SurveyedFile, survey};

/// The content of a coordinator's journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalCheck {
    /// Snapshots and journal files, in the order in which they are read.
    pub files: Vec<JournalFileCheck>,
    /// The content before the first damage; `None` if nothing can be kept.
    pub content: Option<JournalContent>,
    /// Data that a coordinator would ignore, as messages for people.
    pub remarks: Vec<String>,
    /// The first damage: the error with which a coordinator would not start, or the loss that it would report.
    pub damage: Option<String>,
    /// The entries and jobs behind the damage, which a coordinator would lose.
    pub lost: JournalLoss,
}

/// A file of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalFileCheck {
    /// Its path.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// The version of its format, if that can be read.
    pub version: Option<u32>,
    /// The number of entries before its first damage.
    pub entries: usize,
    /// Whether all of it can be used.
    pub is_whole: bool,
}

/// The state from which a coordinator would continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalContent {
    /// The last scheduler.
    pub scheduler: String,
    /// Creation time, in milliseconds since 1970.
    pub begun_millis: u64,
    /// Time of the first entry after the snapshot, in milliseconds since 1970.
    pub first_millis: Option<u64>,
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
}

/// The readable entries behind the damage. The damaged entries cannot be read, so more may be lost.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JournalLoss {
    /// The number of readable entries after the damage.
    pub entries: usize,
    /// Jobs that were accepted there.
    pub jobs: Vec<LostJob>,
    /// Jobs that ended there, but would be unfinished for a coordinator that continues from before the damage.
    pub ended: Vec<JobId>,
}

/// A job that was accepted after the damage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostJob {
    /// Its number.
    pub job: JobId,
    /// Its name.
    pub name: String,
    /// The submitter.
    pub user: String,
    /// The output directory.
    pub output: PathBuf,
}

/// Reads the journal in a coordinator's directory (`DIR/coordinator`, or a copy) as a starting coordinator
/// does, without changing it. A coordinator may be running.
///
/// # Errors
/// Fails if there is no journal, it cannot be read or replayed, or it has another version. Damage is no error.
pub fn check_journal(
    directory: &Path,
    read_policy: ReadPolicy,
) -> Result<JournalCheck, ReplayError> {
    let survey = survey(&RealDisk, directory)?;
    let survey = survey.ok_or_else(|| ReplayError::NoJournal(directory.display().to_string()))?;
    check_survey(directory, survey, read_policy)
}

/// Replays what is left of a journal.
pub(super) fn check_survey(
    directory: &Path,
    survey: Survey,
    read_policy: ReadPolicy,
) -> Result<JournalCheck, ReplayError> {
    let Survey {
        files,
        header,
        mut recovered,
        damage,
        lost,
        loss,
        ..
    } = survey;
    let remarks = std::mem::take(&mut recovered.remarks);
    let damage = damage.map(|damage| damage.to_string());
    let mut known = Vec::new();
    let mut content = None;
    if let Some(header) = header {
        let has_snapshot = recovered.snapshot.is_some();
        let entries = recovered.entries.len();
        let first_millis = recovered
            .entries
            .first()
            .and_then(|text| millis_of(text, &header));
        let state = replay(directory, recovered, &header, read_policy, |state| state)
            .map_err(|error: RecoveryError| ReplayError::Recovery(error.to_string()))?;
        known.extend(state.jobs().keys().copied());
        content = Some(JournalContent {
            scheduler: state.policy().to_owned(),
            begun_millis: header.epoch_micros / 1_000,
            first_millis,
            last_millis: state.unix_micros() / 1_000,
            has_snapshot,
            entries,
            workers: state.links().len(),
            jobs: unfinished_jobs(&state),
        });
    }
    Ok(JournalCheck {
        files: files.into_iter().map(JournalFileCheck::from).collect(),
        content,
        remarks,
        damage: damage.or(loss),
        lost: loss_of(&lost, &known),
    })
}

impl From<SurveyedFile> for JournalFileCheck {
    fn from(file: SurveyedFile) -> JournalFileCheck {
        JournalFileCheck {
            path: file.path,
            bytes: file.bytes,
            version: file.version,
            entries: file.entries,
            is_whole: file.is_whole,
        }
    }
}

fn unfinished_jobs(state: &CoordinatorState) -> Vec<JobSummary> {
    let jobs = state.jobs().values().rev();
    jobs.map(|job| job.summary(state.engine(), state.last()))
        .collect()
}

/// Returns the time of an entry; `None` if its text is not an entry of this version.
fn millis_of(text: &[u8], header: &Header) -> Option<u64> {
    let entry: Entry = serde_json::from_slice(text).ok()?;
    Some((header.epoch_micros + entry.at().0) / 1_000)
}

/// Describes entries that are lost; `known` are the jobs before them.
fn loss_of(entries: &[Vec<u8>], known: &[JobId]) -> JournalLoss {
    let mut accepted = BTreeMap::new();
    let mut ended = Vec::new();
    for text in entries {
        // Counted, even if it is not an entry of this version.
        let Ok(entry) = serde_json::from_slice::<Entry>(text) else {
            continue;
        };
        for extra in entry.extra() {
            match extra {
                Extra::Accepted(job) => {
                    accepted.insert(
                        job.job,
                        LostJob {
                            job: job.job,
                            name: job.plan.name.clone(),
                            user: job.user.clone(),
                            output: job.plan.output.clone(),
                        },
                    );
                }
                Extra::Settled { job, .. } if known.contains(job) => ended.push(*job),
                _ => {}
            }
        }
    }
    JournalLoss {
        entries: entries.len(),
        jobs: accepted.into_values().collect(),
        ended,
    }
}
