//! The parts of a cluster's worker that an embedded one lacks: a directory, a host, other workers.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use napreduce_engine::{AttemptId, JobId, MapOutput, WorkerId};
use napreduce_protocol::{DataNetwork, JobDescription, MapInput, Peer, TaskError};

use super::isolation::Isolation;
use crate::process::{Executable, TaskOutput};

/// The surroundings of a worker of a cluster.
pub trait Environment: Debug + Send + Sync {
    fn name(&self) -> &str;

    /// The name of this host, for people.
    fn host(&self) -> &str;

    fn isolation(&self) -> &Isolation;

    /// Returns the path of the sealed output of a map attempt.
    fn segment(&self, attempt: AttemptId) -> PathBuf;

    /// Returns the private directory of an attempt.
    fn scratch(&self, attempt: AttemptId) -> PathBuf;

    /// Returns the directory for checkpoints of a job whose output is in an object store.
    fn checkpoints(&self, job: JobId) -> PathBuf;

    /// Returns the free space of the disk that attempts write to; 0 if it is not known.
    fn free_disk_bytes(&self) -> u64;

    /// Starts watching the disk that attempts write to.
    fn watch_disk(&self) -> WatchDisk;

    /// Opens log files for an attempt; the second result is for its process.
    fn open_logs(&self, attempt: AttemptId) -> io::Result<(Box<dyn AttemptLogs>, TaskOutput)>;

    /// Removes the files of a job except its logs. Blocking.
    fn forget(&self, job: JobId);

    /// Returns where attempts of this worker, `own`, find map outputs. Omits an output whose holder is not in
    /// `peers`: that worker was lost, and a replacement will be announced.
    fn places(
        &self,
        own: WorkerId,
        outputs: Vec<MapOutput>,
        peers: &BTreeMap<WorkerId, Peer>,
    ) -> Vec<MapInput>;

    /// Returns the parameters for fetching from the data servers of other workers.
    fn data_network(&self, job: JobId) -> DataNetwork;

    /// Prepares directories, program and side files of a job.
    fn prepare(self: Arc<Self>, description: Arc<JobDescription>) -> Preparing;
}

/// The new state of the disk that attempts write to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskChange {
    /// The shortage, or `None` when it has ended.
    pub lacks: Option<String>,
}

/// Returns the state of the disk if it has changed since the last call.
pub type WatchDisk = Box<dyn FnMut() -> Option<DiskChange> + Send>;

pub type Preparing = Pin<Box<dyn Future<Output = Result<Prepared, TaskError>> + Send>>;

/// A job whose attempts can be started.
pub struct Prepared {
    /// `None` for the worker's own program.
    pub program: Option<Executable>,
    pub files: PathBuf,
    /// Returns whether program and side files are unchanged since their verification. Blocking.
    pub is_intact: Box<dyn Fn() -> bool + Send>,
}

/// The log files of one attempt.
pub trait AttemptLogs: Send + Sync {
    /// Truncates the files to their limit.
    fn keep_bound(&mut self);

    /// Returns the end of standard error, if there is any.
    fn end_of_stderr(&self) -> Option<String>;

    /// Saves the output and releases the files for another attempt.
    fn close(self: Box<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}
