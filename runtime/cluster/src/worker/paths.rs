//! Where everything of a worker of a cluster lies in its own directory.
//!
//! Owns the names, and their use by whoever is served. Does not own when files are made or removed
//! (`worker_directory`, `job`), nor what lies on storage that all workers share (`output`).
//!
//! ```text
//! DIR/lock, name, incarnation, process, journal
//! DIR/blobs/<sha256>                             programs and side files
//! DIR/jobs/<job>/shuffle/<attempt>.segment       sealed map output
//! DIR/jobs/<job>/scratch/<attempt>/              the attempt's alone; its process starts in it
//! DIR/jobs/<job>/checkpoints/<attempt>/          what an attempt has saved that is in a store, too
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
    /// The paths inside `root`, which is absolute.
    pub(crate) fn new(root: impl Into<PathBuf>) -> WorkerPaths {
        WorkerPaths { root: root.into() }
    }

    /// The directory itself.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Locked by the daemon as long as it lives.
    pub(super) fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }

    /// Holds the name of the worker.
    pub(super) fn name(&self) -> PathBuf {
        self.root.join("name")
    }

    /// Holds the number of this start of the daemon, in hexadecimal.
    pub(super) fn incarnation(&self) -> PathBuf {
        self.root.join("incarnation")
    }

    /// Says which process the daemon is.
    pub(super) fn process(&self) -> PathBuf {
        self.root.join("process")
    }

    /// Says by which coordinator's journal the jobs are numbered whose logs are here.
    pub(super) fn journal(&self) -> PathBuf {
        self.root.join("journal")
    }

    /// Programs and side files.
    pub(super) fn blobs(&self) -> PathBuf {
        self.root.join("blobs")
    }

    /// What jobs need while they run.
    pub(super) fn jobs(&self) -> PathBuf {
        self.root.join("jobs")
    }

    /// What one job needs while it runs.
    pub(super) fn job(&self, job: JobId) -> PathBuf {
        self.jobs().join(job.to_string())
    }

    /// Sealed map output of a job.
    pub(super) fn shuffle(&self, job: JobId) -> PathBuf {
        self.job(job).join("shuffle")
    }

    /// The sealed output of a map attempt.
    pub(crate) fn segment(&self, attempt: AttemptId) -> PathBuf {
        self.shuffle(attempt.task.job).join(format!("{attempt}.segment"))
    }

    /// The directories of the attempts of a job.
    pub(super) fn scratches(&self, job: JobId) -> PathBuf {
        self.job(job).join("scratch")
    }

    /// The directory of one attempt alone.
    pub(super) fn scratch(&self, attempt: AttemptId) -> PathBuf {
        self.scratches(attempt.task.job).join(attempt.to_string())
    }

    /// What attempts of a job have saved whose output is in a store.
    pub(super) fn checkpoints(&self, job: JobId) -> PathBuf {
        self.job(job).join("checkpoints")
    }

    /// The side files of a job.
    pub(super) fn files(&self, job: JobId) -> PathBuf {
        self.job(job).join("files")
    }

    /// What attempts print.
    pub(super) fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// What the attempts of one job print.
    pub(super) fn job_logs(&self, job: JobId) -> PathBuf {
        self.logs().join(job.to_string())
    }
}
