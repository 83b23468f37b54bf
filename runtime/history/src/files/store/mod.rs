//! The history store of a coordinator: a directory with two files per job, and an index. The process may stop
//! after any step:
//!
//! ```text
//! add     recording -> head -> index        a job exists once its head does
//! remove  recording -> head -> index        a head without a recording is removed at the next start
//! ```
mod files;

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::{EndedJob, HistoryLimits, HistoryStore};
use napreduce_engine::JobId;
use napreduce_protocol::{ClusterSample, ClusterWindow, JobSummary, lock, read_regular};

pub(crate) use self::files::{head_name, job_of_head, read_rows, recording_name};
use crate::files::days::{ClusterDays, read_cluster};
use crate::files::head::{HEAD_BYTES_READ_MAX, StoredHead, split};
use crate::files::index::{Index, IndexRow, Stamp};
use crate::files::recording::{HistoryError, RecordingError};

const INDEX: &str = "index.jsonl";
/// The index of earlier versions, a database.
const FORMER_INDEX: &str = "index.redb";

/// A history: the listing rows are in memory, everything else is read from files.
#[derive(Debug)]
pub struct History {
    directory: PathBuf,
    limits: HistoryLimits,
    index: Index,
    kept: Mutex<Kept>,
    days: Mutex<ClusterDays>,
}

#[derive(Debug, Default)]
struct Kept {
    jobs: BTreeMap<JobId, KeptJob>,
    tokens: BTreeMap<u128, JobId>,
    bytes: u64,
}

#[derive(Debug)]
struct KeptJob {
    summary: JobSummary,
    token: u128,
    bytes: u64,
}

impl History {
    /// Opens the history in `directory`, which is created if missing; returns it and warnings. Heads with a
    /// valid index row are not read; unreadable heads are skipped.
    pub fn open(directory: &Path, limits: HistoryLimits) -> io::Result<(History, Vec<String>)> {
        let stamps = files::list(directory)?;
        // A leftover file does no harm.
        let _ = std::fs::remove_file(directory.join(FORMER_INDEX));
        let (index, mut rows, mut remarks) = Index::open(&directory.join(INDEX));
        let mut kept = Kept::default();
        let mut unknown = Vec::new();
        for (job, stamp) in stamps {
            let row = match rows.remove(&job).filter(|row| row.stamp == stamp) {
                Some(row) => row,
                None => match read_row(&directory.join(head_name(job)), job, stamp) {
                    Ok(row) => {
                        unknown.push((job, row.clone()));
                        row
                    }
                    Err(why) => {
                        let path = directory.join(head_name(job));
                        remarks.push(format!("{} is not in the history: {why}", path.display()));
                        continue;
                    }
                },
            };
            kept.enter(job, row);
        }
        let gone: Vec<JobId> = rows.into_keys().collect();
        if !(unknown.is_empty() && gone.is_empty()) {
            remarks.extend(index.change(&unknown, &gone).err());
        }
        let days = Mutex::new(ClusterDays::beneath(directory));
        let history = History {
            directory: directory.to_owned(),
            limits,
            index,
            kept: Mutex::new(kept),
            days,
        };
        remarks.extend(history.remove_oldest());
        Ok((history, remarks))
    }

    /// Returns the number of jobs and the size of their files in bytes.
    pub fn size(&self) -> (usize, u64) {
        let kept = self.lock();
        (kept.jobs.len(), kept.bytes)
    }

    fn read_files(&self, job: JobId) -> Result<EndedJob, String> {
        match read_head(&self.directory.join(head_name(job)))? {
            StoredHead::Version1(job) => Ok(*job),
            StoredHead::Version2(head) => {
                let name = recording_name(job);
                let rows = read_rows(&self.directory.join(&name));
                head.with_rows(rows, &name)
            }
        }
    }

    fn remove_oldest(&self) -> Vec<String> {
        let gone = self.lock().take_oldest(self.limits);
        if gone.is_empty() {
            return Vec::new();
        }
        let removed = gone.iter().map(|job| files::remove(&self.directory, *job));
        let mut remarks: Vec<String> = removed
            .filter_map(|removed| removed.err().map(|error| error.to_string()))
            .collect();
        remarks.extend(self.index.change(&[], &gone).err());
        remarks
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        lock(&self.kept)
    }
}

/// Opens a history for a coordinator like [`History::open`].
///
/// # Errors
/// Fails if the directory cannot be created or listed.
pub fn open_history(
    directory: &Path,
    limits: HistoryLimits,
) -> io::Result<(Arc<dyn HistoryStore>, Vec<String>)> {
    let (history, remarks) = History::open(directory, limits)?;
    Ok((Arc::new(history), remarks))
}

impl HistoryStore for History {
    fn has(&self, job: JobId) -> bool {
        self.lock().jobs.contains_key(&job)
    }

    fn last(&self) -> Option<JobId> {
        self.lock().jobs.keys().next_back().copied()
    }

    fn of_token(&self, token: u128) -> Option<JobId> {
        self.lock().tokens.get(&token).copied()
    }

    fn summaries(&self, count: usize, leave_out: &dyn Fn(JobId) -> bool) -> Vec<JobSummary> {
        let kept = self.lock();
        let wanted = kept.jobs.iter().rev().filter(|(job, _)| !leave_out(**job));
        wanted
            .take(count)
            .map(|(_, job)| job.summary.clone())
            .collect()
    }

    fn read(&self, job: JobId) -> Option<Result<EndedJob, String>> {
        self.has(job).then(|| self.read_files(job))
    }

    fn add(&self, job: &EndedJob) -> Result<Vec<String>, Box<dyn Error + Send + Sync>> {
        let id = job.detail.summary.job;
        let path = self.directory.join(head_name(id));
        let contents =
            split(job).map_err(|what| HistoryError::new(&path, RecordingError::TooLarge(what)))?;
        let stamp = files::write(&self.directory, id, &contents)?;
        // Built from the written head, in which a long reason is cut.
        let row = row_of(&contents.head, id, stamp)
            .map_err(|what| HistoryError::new(&path, io::Error::other(what).into()))?;
        let mut remarks: Vec<String> = self
            .index
            .change(&[(id, row.clone())], &[])
            .err()
            .into_iter()
            .collect();
        self.lock().enter(id, row);
        remarks.extend(self.remove_oldest());
        Ok(remarks)
    }

    fn note(&self, sample: &ClusterSample) -> Result<(), Box<dyn Error + Send + Sync>> {
        let mut days = lock(&self.days);
        Ok(days.add(sample)?)
    }

    fn window(&self, from_millis: u64, until_millis: u64) -> ClusterWindow {
        read_cluster(&self.directory, from_millis, until_millis)
    }
}

/// Writes the files of a simulated job into `directory`, without index and without syncing.
///
/// # Errors
/// Fails if a file cannot be written, or the job is too large.
pub fn write_simulated(directory: &Path, job: &EndedJob) -> Result<(), HistoryError> {
    let id = job.detail.summary.job;
    let too_large = |what| {
        HistoryError::new(
            &directory.join(head_name(id)),
            RecordingError::TooLarge(what),
        )
    };
    files::write_unsynced(directory, id, &split(job).map_err(too_large)?)
}

impl Kept {
    fn enter(&mut self, job: JobId, row: IndexRow) {
        self.leave(job);
        let IndexRow {
            summary,
            token,
            stamp,
        } = row;
        self.tokens.insert(token, job);
        self.bytes = self.bytes.saturating_add(stamp.bytes());
        self.jobs.insert(
            job,
            KeptJob {
                summary,
                token,
                bytes: stamp.bytes(),
            },
        );
    }

    fn leave(&mut self, job: JobId) {
        let Some(KeptJob { token, bytes, .. }) = self.jobs.remove(&job) else {
            return;
        };
        if self.tokens.get(&token) == Some(&job) {
            self.tokens.remove(&token);
        }
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Removes the oldest jobs until the limits are met; returns them.
    fn take_oldest(&mut self, limits: HistoryLimits) -> Vec<JobId> {
        let mut gone = Vec::new();
        while self.jobs.len() > limits.jobs_max || self.bytes > limits.bytes_max {
            let Some((&job, _)) = self.jobs.first_key_value() else {
                break;
            };
            self.leave(job);
            gone.push(job);
        }
        gone
    }
}

fn read_head(path: &Path) -> Result<StoredHead, String> {
    StoredHead::parse(&read_regular(path, HEAD_BYTES_READ_MAX).map_err(|error| error.to_string())?)
}

fn read_row(path: &Path, job: JobId, stamp: Stamp) -> Result<IndexRow, String> {
    row_of(
        &read_regular(path, HEAD_BYTES_READ_MAX).map_err(|error| error.to_string())?,
        job,
        stamp,
    )
}

fn row_of(head: &[u8], job: JobId, stamp: Stamp) -> Result<IndexRow, String> {
    let (summary, token) = StoredHead::parse(head)?.into_summary();
    if summary.job != job {
        return Err(format!("it belongs to {}", summary.job));
    }
    Ok(IndexRow {
        summary,
        token,
        stamp,
    })
}
