//! Where everything of a job lies inside its output directory.
//!
//! Owns the names. Does not own when files are made, moved or removed.
//!
//! ```text
//! OUT/_temporary/submission-<token>          who claimed it; empty
//! OUT/_temporary.<token>                     `_temporary` until it is locked and says who claimed it
//! OUT/_temporary.<token>.old                 the `_temporary` of an earlier run while it is removed
//! OUT/_temporary.ended                       that of this run while it is removed
//! OUT/_temporary/<job>/<attempt>/            scratch of an attempt, and its part file until it may commit
//! OUT/_temporary/<job>/shuffle/<attempt>.segment   sealed map output
//! OUT/_temporary/<job>/checkpoints/<attempt>/      what an attempt saved when it was checkpointed; kept until the job ends,
//!                                                  since later checkpoints name files of earlier ones
//! OUT/_temporary/<job>/committed/part-r-00000.1    parts of attempts that committed, by the number of the attempt: one
//!                                                  that commits late, unheard, does no harm
//! OUT/part-r-00000, OUT/_SUCCESS                   once the job has committed
//! ```

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use napreduce_core::{AttemptId, JobId, TaskId, TaskKind};

/// Work in progress; its presence without a running job means that a run was killed.
pub(crate) const TEMPORARY: &str = "_temporary";
/// How its name goes on when the job has ended.
const ENDED: &str = ".ended";
/// Written last, when everything else is in place.
pub(crate) const SUCCESS: &str = "_SUCCESS";
/// `_SUCCESS` while it is being written.
pub(crate) const SUCCESS_UNFINISHED: &str = "_SUCCESS.unfinished";
/// How every part file's name starts.
pub(crate) const PART_PREFIX: &str = "part-";

/// The paths of one job.
#[derive(Debug, Clone)]
pub(crate) struct JobPaths {
    output: PathBuf,
    job_directory: PathBuf,
    extension: String,
}

impl JobPaths {
    /// The paths of `job` inside `output`; part files get `extension` unless it is empty.
    pub(crate) fn new(output: &Path, job: JobId, extension: &str) -> JobPaths {
        JobPaths {
            output: output.to_owned(),
            job_directory: output.join(TEMPORARY).join(job.to_string()),
            extension: extension.to_owned(),
        }
    }

    /// The output directory.
    pub(crate) fn output(&self) -> &Path {
        &self.output
    }

    /// Removed when the job ends.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.output.join(TEMPORARY)
    }

    /// The name of `temporary` while it is removed, under which nobody looks for it.
    pub(crate) fn ended(&self) -> PathBuf {
        self.output.join(format!("{TEMPORARY}{ENDED}"))
    }

    /// An empty file that says which submission claimed the directory.
    pub(crate) fn claimant(&self, token: u128) -> PathBuf {
        self.claimant_in(&self.temporary(), token)
    }

    /// The same file while `_temporary` still has another name.
    pub(crate) fn claimant_in(&self, temporary: &Path, token: u128) -> PathBuf {
        temporary.join(format!("submission-{token:032x}"))
    }

    /// `_temporary` until a claim is whole.
    pub(crate) fn staged(&self, token: u128) -> PathBuf {
        self.output.join(format!("{TEMPORARY}.{token:032x}"))
    }

    /// The `_temporary` of an earlier run that a claim is removing.
    pub(crate) fn retired(&self, token: u128) -> PathBuf {
        self.output.join(format!("{TEMPORARY}.{token:032x}.old"))
    }

    /// Sealed map output.
    pub(crate) fn shuffle(&self) -> PathBuf {
        self.job_directory.join("shuffle")
    }

    /// The sealed output of a map attempt.
    pub(crate) fn segment(&self, attempt: AttemptId) -> PathBuf {
        self.shuffle().join(format!("{attempt}.segment"))
    }

    /// The directory of one attempt alone.
    pub(crate) fn attempt(&self, attempt: AttemptId) -> PathBuf {
        self.job_directory.join(attempt.to_string())
    }

    /// What an attempt saves when it is checkpointed.
    pub(crate) fn checkpoint(&self, attempt: AttemptId) -> PathBuf {
        self.job_directory.join("checkpoints").join(attempt.to_string())
    }

    /// Parts whose attempts have committed.
    pub(crate) fn committed(&self) -> PathBuf {
        self.job_directory.join("committed")
    }

    /// The part of an attempt that has committed.
    pub(crate) fn promoted(&self, attempt: AttemptId) -> PathBuf {
        self.committed().join(format!("{}.{}", self.part_name(attempt.task), attempt.number))
    }

    /// The name of the part file that a task writes.
    pub(crate) fn part_name(&self, task: TaskId) -> String {
        let letter = match task.kind {
            TaskKind::Map => 'm',
            TaskKind::Reduce => 'r',
        };
        let dot = if self.extension.is_empty() { "" } else { "." };
        format!("{PART_PREFIX}{letter}-{:05}{dot}{}", task.index, self.extension)
    }
}

/// Whether an entry of an output directory is work in progress: `_temporary`, or what a claim makes or removes.
pub(crate) fn is_temporary(name: &OsStr) -> bool {
    let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(TEMPORARY)) else { return false };
    let token = rest.strip_suffix(".old").unwrap_or(rest).strip_prefix('.');
    rest.is_empty()
        || rest == ENDED
        || token.is_some_and(|token| token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
