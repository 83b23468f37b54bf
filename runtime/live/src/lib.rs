//! The live runtime of napreduce: coordinator, worker and task processes.
//!
//! Owns how a job really runs: processes, messages, files of the output directory, progress for
//! people. Does not own the rules about jobs, tasks and slots (`napreduce-engine`), how records are
//! laid out (`napreduce-data`), nor what a user writes (`napreduce`, which implements [`TaskRunner`]
//! and calls [`run_embedded`]).
//!
//! A program is its own driver and its own task process:
//!
//! ```no_run
//! use napreduce_live::{EmbeddedSettings, run_embedded};
//! use napreduce_protocol::{JobPlan, MapTask, PartOutput, ReduceTask, Split, TaskError};
//! use napreduce_task::{Definitions, MapResult, ReduceResult, TaskContext, TaskRunner, task_process_main, task_process_requested};
//!
//! /// Copies each input file to a part file.
//! struct Copy;
//!
//! impl TaskRunner for Copy {
//!     fn run_map(&self, task: &MapTask, context: &TaskContext) -> Result<MapResult, TaskError> {
//!         let bytes = std::fs::copy(&task.split.parts[0].path, &task.output)
//!             .map_err(|error| TaskError::io(format!("copy {}", task.split), &error))?;
//!         context.progress().advance(bytes);
//!         Ok(MapResult::Done { part: Some(PartOutput { records: 1, bytes, ..PartOutput::default() }) })
//!     }
//!
//!     fn run_reduce(&self, _: &ReduceTask, _: &TaskContext) -> Result<ReduceResult, TaskError> {
//!         Err(TaskError::fatal("copy has no reduces"))
//!     }
//! }
//!
//! struct Program;
//!
//! impl Definitions for Program {
//!     fn build(&self, definition: &str, _parameters: &[u8]) -> Result<Box<dyn TaskRunner>, TaskError> {
//!         match definition {
//!             "copy" => Ok(Box::new(Copy)),
//!             other => Err(TaskError::fatal(format!("no job is called {other}"))),
//!         }
//!     }
//! }
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     if task_process_requested() {
//!         task_process_main(&Program);
//!     }
//!     let mut plan = JobPlan::new("copy", "out");
//!     plan.reduces = 0;
//!     plan.splits = vec![Split { path: "in.txt".into(), offset: 0, length: 100, file_length: 100, version: None }.into()];
//!     let report = run_embedded(plan, &EmbeddedSettings::default())?;
//!     println!("{} took {:?}", report.job, report.wall);
//!     Ok(())
//! }
//! ```

// Without daemons the part of the loops that only they use is compiled and never called; it leaves when the
// cluster has a crate of its own.
#![cfg_attr(not(feature = "daemon"), allow(dead_code, unused_imports))]

#[cfg(not(target_os = "linux"))]
compile_error!(
    "napreduce runs on Linux only, from 5.4 on: how tasks are watched and suspended no other system offers"
);

#[cfg(feature = "cluster")]
mod blobs;
mod chain;
#[cfg(feature = "cluster")]
mod client;
#[cfg(feature = "cluster")]
mod cluster_directory;
mod coordinator;
#[cfg(feature = "cluster")]
mod directory_mark;
mod embedded;
#[cfg(feature = "daemon")]
mod journal;
mod output;
mod progress;
mod random;
mod shuffle;
mod side_file;
mod spans;
mod user;
mod worker;

pub use chain::{Chain, ChainKeeper, KeepChain};
#[cfg(feature = "cluster")]
pub use client::{
    ClientError, ClusterClient, ClusterPlace, FollowOptions, LogRead, OnInterrupt, Patience, SubmitOptions,
};
#[cfg(feature = "cluster")]
pub use cluster_directory::{ClusterDirectory, ClusterDirectoryError, CoordinatorRecord, DirectoryLock};
#[cfg(feature = "daemon")]
pub use coordinator::{
    CoordinatorConfiguration, CoordinatorError, JournalCheck, ReplayError, ReplayedBatch, check_journal,
    replay_journal, run_coordinator,
};
#[cfg(feature = "cluster")]
pub use directory_mark::{DirectoryKind, DirectoryMarkError};
pub use embedded::{EmbeddedSettings, interrupted, next_job, run_embedded};
#[cfg(feature = "daemon")]
pub use journal::{FsyncPolicy, JournalError};
pub use output::{GuestOutput, OutputReservation, check_output, check_reads};
pub use progress::{ProgressDisplay, ProgressMode};
pub use side_file::{SIDE_FILE_BYTES_MAX, SideFileSource};
pub use spans::SPAN_TARGET;
pub use worker::{IsolationMode, IsolationRules, PageOut, SuspendRules};
#[cfg(feature = "daemon")]
pub use worker::{LeaveRules, OnTerminate, WorkerConfiguration, WorkerError, run_worker};
