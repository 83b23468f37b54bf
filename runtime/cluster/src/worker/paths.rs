//! The layout of a cluster worker's directory.
//!
//! ```text
//! DIR/lock, name, incarnation, process, journal
//! DIR/blobs/<sha256>                             programs and side files
//! DIR/jobs/<job>/shuffle/<attempt>.segment       sealed map output
//! DIR/jobs/<job>/scratch/<attempt>/              the attempt's working directory
//! DIR/jobs/<job>/checkpoints/<attempt>/          local copy of a checkpoint in an object store
//! DIR/jobs/<job>/files/<name>                    side files
//! DIR/logs/<job>/<attempt>/{stdout,stderr}
//! ```

use std::path::{Path, PathBuf};

use napreduce_engine::{AttemptId, JobId};

/// The directory of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkerPaths {
    root: PathBuf,
}

impl WorkerPaths {
    /// `root` must be absolute.
    pub(crate) fn new(root: impl Into<PathBuf>) -> WorkerPaths {
        WorkerPaths { root: root.into() }
    }

    /// The directory itself.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The lock file of the daemon.
    pub(super) fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }

    /// The file with the worker's name.
    pub(super) fn name(&self) -> PathBuf {
        self.root.join("name")
    }

    /// The file with this start's incarnation number, in hexadecimal.
    pub(super) fn incarnation(&self) -> PathBuf {
        self.root.join("incarnation")
    }

    /// The file that identifies the daemon's process.
    pub(super) fn process(&self) -> PathBuf {
        self.root.join("process")
    }

    /// The file with the identity of the journal that numbers the jobs in the logs.
    pub(super) fn journal(&self) -> PathBuf {
        self.root.join("journal")
    }

    /// Programs and side files.
    pub(super) fn blobs(&self) -> PathBuf {
        self.root.join("blobs")
    }

    /// Data of running jobs.
    pub(super) fn jobs(&self) -> PathBuf {
        self.root.join("jobs")
    }

    /// Data of one running job.
    pub(super) fn job(&self, job: JobId) -> PathBuf {
        self.jobs().join(job.to_string())
    }

    /// Sealed map output of a job.
    pub(super) fn shuffle(&self, job: JobId) -> PathBuf {
        self.job(job).join("shuffle")
    }

    /// The sealed output of a map attempt.
    pub(crate) fn segment(&self, attempt: AttemptId) -> PathBuf {
        self.shuffle(attempt.task.job)
            .join(format!("{attempt}.segment"))
    }

    /// The private directories of a job's attempts.
    pub(super) fn scratches(&self, job: JobId) -> PathBuf {
        self.job(job).join("scratch")
    }

    /// The private directory of an attempt.
    pub(super) fn scratch(&self, attempt: AttemptId) -> PathBuf {
        self.scratches(attempt.task.job).join(attempt.to_string())
    }

    /// Checkpoints of a job whose output is in an object store.
    pub(super) fn checkpoints(&self, job: JobId) -> PathBuf {
        self.job(job).join("checkpoints")
    }

    /// The side files of a job.
    pub(super) fn files(&self, job: JobId) -> PathBuf {
        self.job(job).join("files")
    }

    /// Logs of all jobs.
    pub(super) fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// Logs of one job.
    pub(super) fn job_logs(&self, job: JobId) -> PathBuf {
        self.logs().join(job.to_string())
    }
}
