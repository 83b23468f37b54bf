//! What a worker of a cluster has that an embedded one has not: a directory, a host, other workers.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use napreduce_engine::{AttemptId, JobId, MapOutput, WorkerId};
use napreduce_protocol::{DataNetwork, JobDescription, MapInput, Peer, TaskError};
use napreduce_task::{Executable, TaskOutput};

use super::disk::Disk;
use super::isolation::Isolation;
use super::logs::AttemptLogs;
use super::paths::WorkerPaths;

/// The surroundings of a worker of a cluster.
pub(super) trait Environment: Debug + Send + Sync {
    fn paths(&self) -> &WorkerPaths;

    /// The name of the worker.
    fn name(&self) -> &str;

    /// The name of this host, for people.
    fn host(&self) -> &str;

    fn isolation(&self) -> &Isolation;

    /// The disk that attempts write to.
    fn disk(&self) -> Disk;

    /// Files for an attempt to print to; the second result is for its process.
    fn open_logs(&self, attempt: AttemptId) -> io::Result<(AttemptLogs, TaskOutput)>;

    /// Keeps the logs of a job that has ended here. Blocking.
    fn keep_logs(&self, job: JobId);

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

pub(super) type Preparing = Pin<Box<dyn Future<Output = Result<Prepared, TaskError>> + Send>>;

/// A job whose attempts can be started here.
pub(super) struct Prepared {
    /// `None` for the worker's own.
    pub(super) program: Option<Executable>,
    pub(super) files: PathBuf,
    /// Whether program and side files are still what was verified. Blocking, for the time of a look at each.
    pub(super) is_intact: Box<dyn Fn() -> bool + Send>,
}
