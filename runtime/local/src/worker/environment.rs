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
    /// The name of the worker.
    fn name(&self) -> &str;

    /// The name of this host, for people.
    fn host(&self) -> &str;

    fn isolation(&self) -> &Isolation;

    /// Where this worker keeps the sealed output of a map attempt.
    fn segment(&self, attempt: AttemptId) -> PathBuf;

    /// The directory of one attempt alone.
    fn scratch(&self, attempt: AttemptId) -> PathBuf;

    /// The checkpoints of a job whose output is in an object store.
    fn checkpoints(&self, job: JobId) -> PathBuf;

    /// Watches the disk that attempts write to.
    fn watch_disk(&self) -> WatchDisk;

    /// Files for an attempt to print to; the second result is for its process.
    fn open_logs(&self, attempt: AttemptId) -> io::Result<(Box<dyn AttemptLogs>, TaskOutput)>;

    /// Removes the files of a job that has ended here, but for its logs. Blocking.
    fn forget(&self, job: JobId);

    /// Where attempts of this worker, which is `own`, find map outputs. One whose holder is not named is left
    /// out: its worker is gone, and what replaces it will be named.
    fn places(
        &self,
        own: WorkerId,
        outputs: Vec<MapOutput>,
        peers: &BTreeMap<WorkerId, Peer>,
    ) -> Vec<MapInput>;

    /// How attempts of a job reach the data servers of other workers.
    fn data_network(&self, job: JobId) -> DataNetwork;

    /// Makes directories, program and side files of a job ready.
    fn prepare(self: Arc<Self>, description: Arc<JobDescription>) -> Preparing;
}

/// Returns what the disk lacks now, or that it lacks nothing, if that has changed since the last call.
pub type WatchDisk = Box<dyn FnMut() -> Option<Option<String>> + Send>;

pub type Preparing = Pin<Box<dyn Future<Output = Result<Prepared, TaskError>> + Send>>;

/// A job whose attempts can be started here.
pub struct Prepared {
    /// `None` for the worker's own.
    pub program: Option<Executable>,
    pub files: PathBuf,
    /// Whether program and side files are still what was verified. Blocking, for the time of a look at each.
    pub is_intact: Box<dyn Fn() -> bool + Send>,
}

/// The files that one attempt prints to.
pub trait AttemptLogs: Send + Sync {
    /// Cuts the files to their bound.
    fn keep_bound(&mut self);

    /// The end of standard error, if there is any.
    fn end_of_stderr(&self) -> Option<String>;

    /// Keeps what was printed, and gives the files to another attempt.
    fn close(self: Box<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}
