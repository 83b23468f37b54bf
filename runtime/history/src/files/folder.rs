//! Read access to a history from outside the coordinator: takes no locks and writes nothing. The cluster may run
//! meanwhile and remove jobs, which then read as `None`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use napreduce_engine::JobId;
use napreduce_protocol::{JobSummary, read_regular};
use thiserror::Error;

use crate::EndedJob;
use crate::files::head::{HEAD_BYTES_READ_MAX, JobOverview, StoredHead};
use crate::files::store::{head_name, job_of_head, read_rows, recording_name};

/// A history opened for reading.
#[derive(Debug)]
pub struct HistoryFolder {
    path: PathBuf,
    jobs: Vec<JobId>,
}

/// Why a history cannot be read.
#[derive(Debug, Error)]
pub enum FolderError {
    #[error(
        "{path} holds no history: expected coordinator/history or files such as job_0001.json; give the directory of \
                 a cluster or a copy of its history"
    )]
    NotAHistory { path: PathBuf },
    /// The history has no ended job.
    #[error(
        "{path} holds no ended job; wait until a job ends, or give the directory of another cluster"
    )]
    Empty { path: PathBuf },
    #[error("cannot read {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    /// A file is damaged or foreign.
    #[error("{path} is unusable: {what}; copy the history without {files} and give the copy", files = both(job))]
    Damaged {
        path: PathBuf,
        job: JobId,
        what: String,
    },
}

fn both(job: &JobId) -> String {
    format!("{} and {}", head_name(*job), recording_name(*job))
}

impl HistoryFolder {
    /// Opens the directory of a cluster or its coordinator, or a copy of a history.
    ///
    /// # Errors
    /// Fails if the directory is none of these, cannot be read, or has no job.
    pub fn open(directory: &Path) -> Result<HistoryFolder, FolderError> {
        let places = [
            directory.join("coordinator/history"),
            directory.join("history"),
            directory.to_owned(),
        ];
        let mut found = None;
        for place in places {
            match jobs_in(&place) {
                Ok(jobs) if jobs.is_empty() && place == directory => {}
                Ok(jobs) => {
                    found = Some((place, jobs));
                    break;
                }
                Err(error) if is_absent(&error) && place != directory => {}
                Err(source) => {
                    return Err(FolderError::Io {
                        path: place,
                        source,
                    });
                }
            }
        }
        match found {
            None => Err(FolderError::NotAHistory {
                path: directory.to_owned(),
            }),
            Some((path, jobs)) if jobs.is_empty() => Err(FolderError::Empty { path }),
            Some((path, jobs)) => Ok(HistoryFolder { path, jobs }),
        }
    }

    /// Returns the directory of the files.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the jobs that have heads, oldest first.
    pub fn jobs(&self) -> &[JobId] {
        &self.jobs
    }

    /// Returns the listing row of a job; `None` if the job was removed.
    ///
    /// # Errors
    /// Fails if the head cannot be read.
    pub fn summary(&self, job: JobId) -> Result<Option<JobSummary>, FolderError> {
        Ok(self.head(job)?.map(|head| head.summary().clone()))
    }

    /// Returns the data of a job's head; `None` if the job was removed.
    ///
    /// # Errors
    /// Fails if the head cannot be read.
    pub fn overview(&self, job: JobId) -> Result<Option<JobOverview>, FolderError> {
        Ok(self.head(job)?.map(StoredHead::into_overview))
    }

    /// Finds histories: `directory` itself if it is a cluster or history; otherwise the folders in it or in its
    /// `recordings` folder, sorted by name.
    ///
    /// # Errors
    /// Fails if there is none, or the directory cannot be read.
    pub fn find(directory: &Path) -> Result<Vec<PathBuf>, FolderError> {
        let not_found = match HistoryFolder::open(directory) {
            Ok(_) | Err(FolderError::Empty { .. }) => return Ok(vec![directory.to_owned()]),
            Err(error @ FolderError::NotAHistory { .. }) => error,
            Err(error) => return Err(error),
        };
        let io = |source| FolderError::Io {
            path: directory.to_owned(),
            source,
        };
        let mut found = Vec::new();
        let recordings = directory.join("recordings");
        let places = [Some(directory), recordings.is_dir().then_some(&*recordings)];
        for place in places.into_iter().flatten() {
            for entry in fs::read_dir(place).map_err(io)? {
                let path = entry.map_err(io)?.path();
                if path.is_dir() && HistoryFolder::open(&path).is_ok() {
                    found.push(path);
                }
            }
        }
        found.sort();
        if found.is_empty() {
            Err(not_found)
        } else {
            Ok(found)
        }
    }

    /// Reads a job; `None` if it was removed.
    ///
    /// # Errors
    /// Fails if the head cannot be read, or rows of the recording are missing.
    pub fn read(&self, job: JobId) -> Result<Option<EndedJob>, FolderError> {
        self.read_as(job, true)
    }

    /// Reads a job as far as possible; missing rows are reported in its events.
    ///
    /// # Errors
    /// Fails if the head cannot be read.
    pub fn read_partial(&self, job: JobId) -> Result<Option<EndedJob>, FolderError> {
        self.read_as(job, false)
    }

    fn read_as(&self, job: JobId, is_strict: bool) -> Result<Option<EndedJob>, FolderError> {
        let head = match self.head(job)? {
            None => return Ok(None),
            Some(StoredHead::Version1(job)) => return Ok(Some(*job)),
            Some(StoredHead::Version2(head)) => head,
        };
        let name = recording_name(job);
        let path = self.path.join(&name);
        let rows = read_rows(&path);
        let remarks = rows.remarks.join("; ");
        let missing = head
            .missing(&rows)
            .or_else(|| (!remarks.is_empty()).then(String::new));
        if let Some(missing) = missing {
            // A removed job loses its recording before its head.
            if self.head(job)?.is_none() {
                return Ok(None);
            }
            if is_strict {
                let what = [remarks, missing];
                let what: Vec<&str> = what
                    .iter()
                    .map(String::as_str)
                    .filter(|what| !what.is_empty())
                    .collect();
                return Err(FolderError::Damaged {
                    path,
                    job,
                    what: what.join("; "),
                });
            }
        }
        let damaged = |what| FolderError::Damaged {
            path: self.path.join(head_name(job)),
            job,
            what,
        };
        head.with_rows(rows, &name).map(Some).map_err(damaged)
    }

    fn head(&self, job: JobId) -> Result<Option<StoredHead>, FolderError> {
        let path = self.path.join(head_name(job));
        let damaged = |what| FolderError::Damaged {
            path: path.clone(),
            job,
            what,
        };
        let bytes = match read_regular(&path, HEAD_BYTES_READ_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                return Err(damaged(error.to_string()));
            }
            Err(source) => return Err(FolderError::Io { path, source }),
        };
        let head = StoredHead::parse(&bytes).map_err(damaged)?;
        match head.summary().job {
            same if same == job => Ok(Some(head)),
            other => Err(damaged(format!("it belongs to {other}"))),
        }
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn jobs_in(directory: &Path) -> io::Result<Vec<JobId>> {
    let mut jobs = Vec::new();
    for entry in fs::read_dir(directory)? {
        jobs.extend(entry?.file_name().to_str().and_then(job_of_head));
    }
    jobs.sort();
    Ok(jobs)
}
