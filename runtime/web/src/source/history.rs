//! Ended jobs from the files of a history, without a running cluster, locks or writes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use napreduce_engine::{AttemptId, JobId, Reason, ReasonCode, TaskId};
use napreduce_history::{FolderError, HistoryFolder, JobOverview};
use napreduce_protocol::{
    JobDetail, JobSummary, LogStream, QueueListing, SlotsWanted, TaskSummary, WorkerSummary, lock,
};

use super::fresh::Fresh;
use super::{PageSource, SourceError};

/// Jobs whose details are kept.
const DETAILS_MAX: usize = 8;

/// The history in a directory.
#[derive(Debug)]
pub struct HistorySource {
    path: PathBuf,
    overviews: Fresh<Vec<JobOverview>>,
    jobs: Fresh<Vec<JobSummary>>,
    kept: Mutex<Kept>,
    /// Held while a job is read: a page asks several things about a job at once.
    reading: Mutex<()>,
}

#[derive(Debug, Default)]
struct Kept {
    overviews: HashMap<JobId, JobOverview>,
    /// Most recently used last.
    details: Vec<Arc<JobDetail>>,
    remarks: Vec<String>,
}

impl HistorySource {
    /// Opens the history in the directory of a cluster or its coordinator, or a copy of one.
    ///
    /// # Errors
    /// Fails if it is not a history or cannot be read.
    pub fn open(path: &Path) -> Result<HistorySource, FolderError> {
        match HistoryFolder::open(path) {
            // Jobs may end later.
            Ok(_) | Err(FolderError::Empty { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(HistorySource {
            path: path.to_owned(),
            overviews: Fresh::default(),
            jobs: Fresh::default(),
            kept: Mutex::default(),
            reading: Mutex::default(),
        })
    }

    fn list(&self) -> Result<Vec<JobOverview>, SourceError> {
        let folder = match HistoryFolder::open(&self.path) {
            Ok(folder) => folder,
            Err(FolderError::Empty { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(SourceError::Broken(error.to_string())),
        };
        let mut kept = lock(&self.kept);
        kept.remarks.clear();
        let mut jobs = Vec::new();
        for job in folder.jobs().iter().rev() {
            if let Some(known) = kept.overviews.get(job) {
                jobs.push(known.clone());
                continue;
            }
            match folder.overview(*job) {
                Ok(Some(overview)) => {
                    kept.overviews.insert(*job, overview.clone());
                    jobs.push(overview);
                }
                // Removed meanwhile.
                Ok(None) => {}
                Err(error) => kept.remarks.push(error.to_string()),
            }
        }
        Ok(jobs)
    }

    fn kept_detail(&self, job: JobId) -> Option<Arc<JobDetail>> {
        lock(&self.kept)
            .details
            .iter()
            .find(|known| known.summary.job == job)
            .cloned()
    }

    /// Reads data of an ended job.
    fn read<T>(
        &self,
        job: JobId,
        read: impl FnOnce(&HistoryFolder) -> Result<Option<T>, FolderError>,
    ) -> Result<T, SourceError> {
        let broken = |error: FolderError| SourceError::Broken(error.to_string());
        let absent = || SourceError::Absent(format!("no {job} in {}", self.path.display()));
        let folder = match HistoryFolder::open(&self.path) {
            Ok(folder) => folder,
            Err(FolderError::Empty { .. }) => return Err(absent()),
            Err(error) => return Err(broken(error)),
        };
        read(&folder).map_err(broken)?.ok_or_else(absent)
    }
}

impl PageSource for HistorySource {
    fn name(&self) -> String {
        format!("the history in {}", self.path.display())
    }

    fn is_live(&self) -> bool {
        false
    }

    fn jobs(&self) -> Result<Arc<Vec<JobSummary>>, SourceError> {
        self.jobs.get(|| {
            Ok(self
                .overviews()?
                .iter()
                .map(|overview| overview.summary.clone())
                .collect())
        })
    }

    fn overviews(&self) -> Result<Arc<Vec<JobOverview>>, SourceError> {
        self.overviews.get(|| self.list())
    }

    fn job(&self, job: JobId) -> Result<Arc<JobDetail>, SourceError> {
        if let Some(known) = self.kept_detail(job) {
            return Ok(known);
        }
        let _reading = lock(&self.reading);
        if let Some(just_read) = self.kept_detail(job) {
            return Ok(just_read);
        }
        let Ok(detail) = self.read(job, |folder| {
            Ok(folder.read(job)?.map(|ended| Arc::new(ended.detail)))
        }) else {
            // Not cached: a damaged job may still be being copied.
            let whole = |folder: &HistoryFolder| folder.read_partial(job);
            return self.read(job, |folder| {
                Ok(whole(folder)?.map(|ended| Arc::new(ended.detail)))
            });
        };
        let mut kept = lock(&self.kept);
        kept.details.push(detail.clone());
        let too_many = kept.details.len().saturating_sub(DETAILS_MAX);
        kept.details.drain(..too_many);
        Ok(detail)
    }

    fn workers(&self) -> Result<Arc<Vec<WorkerSummary>>, SourceError> {
        Ok(Arc::default())
    }

    fn queues(&self) -> Result<Arc<QueueListing>, SourceError> {
        Ok(Arc::new(QueueListing {
            scheduler: "unknown".to_owned(),
            queues: None,
            wanted: SlotsWanted::default(),
        }))
    }

    fn tasks(&self, job: JobId) -> Result<Arc<Vec<TaskSummary>>, SourceError> {
        Ok(Arc::new(self.job(job)?.tasks()))
    }

    fn explain(&self, job: JobId, _: Option<TaskId>) -> Result<Vec<Reason>, SourceError> {
        let detail = self.job(job)?;
        let phase = detail.summary.phase.in_words();
        let why = detail.summary.reason.as_deref();
        let text = why.map_or_else(
            || format!("{job} has {phase}"),
            |why| format!("{job} has {phase}: {why}"),
        );
        Ok(vec![Reason::new(ReasonCode::State, text)])
    }

    /// The history has the end of standard error of failed attempts.
    fn log(
        &self,
        attempt: AttemptId,
        stream: LogStream,
        offset: u64,
        bytes_max: u64,
    ) -> Result<Vec<u8>, SourceError> {
        let job = attempt.task.job;
        let logs = self.read(job, |folder| {
            Ok(folder.read_partial(job)?.map(|ended| ended.logs))
        })?;
        let kept = logs
            .iter()
            .find(|log| log.attempt == attempt && stream == LogStream::Stderr);
        let kept = kept.ok_or_else(|| {
            SourceError::Absent(format!(
                "the logs of {attempt} are on its worker, not in the history"
            ))
        })?;
        let place = |at: u64| {
            usize::try_from(at)
                .unwrap_or(usize::MAX)
                .min(kept.stderr.len())
        };
        Ok(kept.stderr.as_bytes()[place(offset)..place(offset.saturating_add(bytes_max))].to_vec())
    }

    fn history(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn remarks(&self) -> Vec<String> {
        lock(&self.kept).remarks.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use napreduce_answers::samples;
    use napreduce_history::{EndedJob, KeptLog, write_simulated};
    use napreduce_protocol::JobEnd;

    use super::*;

    /// Returns the history of a failed job with a log, and the attempt of the log.
    fn failed_job(folder: &Path) -> (HistorySource, AttemptId) {
        let detail = samples::detail();
        let attempt = detail.attempts[0].attempt;
        let job = EndedJob {
            token: 1,
            end: JobEnd::Failed {
                job: attempt.task.job,
                reason: String::new(),
                failure: None,
            },
            detail,
            cluster: None,
            logs: vec![KeptLog {
                attempt,
                stderr: "it panicked".into(),
            }],
        };
        write_simulated(folder, &job).expect("a history");
        (HistorySource::open(folder).expect("a history"), attempt)
    }

    #[test]
    fn concurrent_requests_share_one_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let (source, attempt) = failed_job(folder.path());
        let all_started = Barrier::new(8);
        let read = || {
            all_started.wait();
            source.job(attempt.task.job).expect("the job")
        };
        let read: Vec<Arc<JobDetail>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(read)).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().expect("it reads"))
                .collect()
        });
        assert!(read.iter().all(|one| Arc::ptr_eq(one, &read[0])));
    }

    #[test]
    fn history_has_stderr_of_failed_attempts_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let (source, attempt) = failed_job(folder.path());
        let read = |offset, most| {
            source
                .log(attempt, LogStream::Stderr, offset, most)
                .expect("kept")
        };
        assert_eq!(
            (read(0, 99), read(3, 3), read(99, 9)),
            (b"it panicked".into(), b"pan".into(), Vec::new())
        );
        let printed = source.log(attempt, LogStream::Stdout, 0, 99);
        assert!(
            matches!(printed, Err(SourceError::Absent(_))),
            "{printed:?}"
        );
    }
}
