//! Jobs that have ended, in files that outlive the coordinator.
//!
//! Owns one file for each job, `job_0007.json`, and how many are kept. Does not own jobs that are running.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use napreduce_core::JobId;
use napreduce_protocol::{JobDetail, JobEnd, JobSummary};
use serde::{Deserialize, Serialize};

/// Version of the files.
const HISTORY_VERSION: u32 = 1;

/// A job that has ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct EndedJob {
    version: u32,
    pub(super) token: u128,
    pub(super) end: JobEnd,
    pub(super) detail: JobDetail,
}

impl EndedJob {
    pub(super) fn new(token: u128, end: JobEnd, detail: JobDetail) -> EndedJob {
        EndedJob { version: HISTORY_VERSION, token, end, detail }
    }
}

/// The jobs in history: a line of each in memory, the rest in its file.
#[derive(Debug)]
pub(super) struct History {
    directory: PathBuf,
    kept_max: usize,
    summaries: BTreeMap<JobId, JobSummary>,
    tokens: BTreeMap<u128, JobId>,
}

impl History {
    /// Reads the lines of the newest jobs in `directory`, of which there are at most `kept_max` kept. Files that cannot
    /// be read are left alone and named.
    pub(super) fn open(directory: &Path, kept_max: usize) -> io::Result<(History, Vec<String>)> {
        fs::create_dir_all(directory)?;
        let (summaries, tokens) = (BTreeMap::new(), BTreeMap::new());
        let mut history = History { directory: directory.to_owned(), kept_max, summaries, tokens };
        let mut remarks = Vec::new();
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            match read(&path) {
                Ok(job) => history.enter(&job),
                Err(why) => remarks.push(format!("{} is left out of the history: {why}", path.display())),
            }
        }
        remarks.extend(history.remove_oldest());
        Ok((history, remarks))
    }

    pub(super) fn has(&self, job: JobId) -> bool {
        self.summaries.contains_key(&job)
    }

    /// The highest number in it.
    pub(super) fn last(&self) -> Option<JobId> {
        self.summaries.keys().next_back().copied()
    }

    /// The job that was submitted with this token.
    pub(super) fn of_token(&self, token: u128) -> Option<JobId> {
        self.tokens.get(&token).copied()
    }

    /// Newest first.
    pub(super) fn summaries(&self) -> impl Iterator<Item = &JobSummary> {
        self.summaries.values().rev()
    }

    /// Everything about a job; `None` when it is not there.
    pub(super) fn read(&self, job: JobId) -> Option<Result<EndedJob, String>> {
        self.has(job).then(|| read(&self.path(job)))
    }

    /// Where the file of a job is.
    pub(super) fn path(&self, job: JobId) -> PathBuf {
        self.directory.join(format!("{job}.json"))
    }

    /// Enters a job whose file is written; what could not be removed in return.
    pub(super) fn add(&mut self, job: &EndedJob) -> Vec<String> {
        self.enter(job);
        self.remove_oldest()
    }

    fn enter(&mut self, job: &EndedJob) {
        self.tokens.insert(job.token, job.detail.summary.job);
        self.summaries.insert(job.detail.summary.job, job.detail.summary.clone());
    }

    fn remove_oldest(&mut self) -> Vec<String> {
        let mut remarks = Vec::new();
        while self.summaries.len() > self.kept_max {
            let Some((job, _)) = self.summaries.pop_first() else { break };
            self.tokens.retain(|_, known| *known != job);
            if let Err(error) = fs::remove_file(self.path(job)) {
                remarks.push(format!("cannot remove {}: {error}", self.path(job).display()));
            }
        }
        remarks
    }
}

/// Writes the file of a job, complete under its name or not there.
pub(super) fn write(path: &Path, job: &EndedJob) -> io::Result<()> {
    let unfinished = path.with_extension("unfinished");
    let mut file = File::create(&unfinished)?;
    file.write_all(&serde_json::to_vec(job)?)?;
    file.sync_data()?;
    fs::rename(&unfinished, path)
}

fn read(path: &Path) -> Result<EndedJob, String> {
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    let job: EndedJob = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    if job.version != HISTORY_VERSION {
        return Err(format!("it has version {}, and this program reads {HISTORY_VERSION}", job.version));
    }
    Ok(job)
}
