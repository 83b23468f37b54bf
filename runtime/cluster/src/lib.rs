//! Runs jobs on a cluster: the client, and with the feature `daemon` the daemons of coordinator and workers.
//!
//! The client submits, follows and commands jobs over encrypted connections. A daemon wraps the coordinator
//! or the worker of `napreduce-local`: the coordinator gets a journal, a history and connections; the worker
//! gets a directory, a data server and a connection. `napreduce-engine` makes the decisions.

mod blobs;
mod client;
mod cluster_directory;
#[cfg(feature = "daemon")]
mod coordinator;
mod directory_mark;
#[cfg(feature = "daemon")]
mod journal;
mod shuffle;
pub mod transport;
#[cfg(feature = "daemon")]
mod worker;

pub use client::{
    AsyncClient, ClientError, ClusterClient, ClusterPlace, FollowOptions, LogRead, OnInterrupt,
    Patience, SubmitOptions, attach_job, start_job,
};
pub use cluster_directory::{
    ClusterDirectory, ClusterDirectoryError, CoordinatorRecord, DirectoryLock, RunningProcess,
};
#[cfg(feature = "daemon")]
pub use coordinator::{
    CoordinatorConfiguration, CoordinatorError, JournalCheck, JournalContent, JournalFileCheck,
    JournalLoss, LostJob, RepairError, ReplayError, check_journal, coordinator_daemon,
    repair_journal, replay_journal, run_coordinator,
};
pub use directory_mark::{DirectoryKind, DirectoryMarkError};
#[cfg(feature = "daemon")]
pub use journal::{FsyncPolicy, JournalError};
pub use shuffle::start_fetch;
#[cfg(feature = "daemon")]
pub use worker::{
    LeaveRules, OnTerminate, StartProcesses, WorkerConfiguration, WorkerError, end_leftovers,
    run_worker, worker_daemon,
};
