//! The live runtime of napreduce: coordinator, worker and task processes.
//!
//! Owns how a job really runs: processes, messages, files of the output directory, progress for people. Does not own
//! the rules about jobs, tasks and slots (`napreduce-core`), how records are laid out (`napreduce-data`), nor what a
//! user writes (`napreduce`, which implements [`JobBody`] and calls [`run_embedded`]).
//!
//! A program is its own driver and its own task process:
//!
//! ```no_run
//! use napreduce_live::{
//!     Definitions, EmbeddedSettings, JobBody, JobPlan, MapResult, MapTask, PartOutput, ReduceResult, ReduceTask, Split,
//!     TaskContext, TaskError, run_embedded, task_process_main, task_process_requested,
//! };
//!
//! /// Copies each input file to a part file.
//! struct Copy;
//!
//! impl JobBody for Copy {
//!     fn run_map(&self, task: &MapTask, context: &TaskContext) -> Result<MapResult, TaskError> {
//!         let bytes = std::fs::copy(&task.split.parts[0].path, &task.output)
//!             .map_err(|error| TaskError::io(format!("copy {}", task.split), &error))?;
//!         context.progress().advance(bytes);
//!         Ok(MapResult::Done { part: Some(PartOutput { records: 1, bytes, digest: 0 }) })
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
//!     fn build(&self, definition: &str, _parameters: &[u8]) -> Result<Box<dyn JobBody>, TaskError> {
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
//!     plan.splits = vec![Split { path: "in.txt".into(), offset: 0, length: 100, file_length: 100 }.into()];
//!     let report = run_embedded(plan, &EmbeddedSettings::default())?;
//!     println!("{} took {:?}", report.job, report.wall);
//!     Ok(())
//! }
//! ```

#[cfg(not(target_os = "linux"))]
compile_error!(
    "napreduce runs on Linux only, from 5.4 on: how tasks are watched and suspended no other system offers"
);

mod blobs;
mod body;
mod chain;
mod checkpoint;
mod client;
mod cluster_directory;
mod command;
mod coordinator;
mod counters;
mod directory_mark;
mod embedded;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod journal;
mod log;
mod output;
mod path_bytes;
mod plan;
mod process;
mod progress;
mod protocol;
mod report;
mod shuffle;
mod task;
mod text;
mod transport;
mod units;
mod user;
mod worker;

pub use blobs::{Digest, DigestError};
pub use body::{
    Definitions, InputSplit, JobBody, MapResult, MapTask, PartOutput, ReduceResult, ReduceTask,
    SavedCheckpoint, Split,
};
pub use chain::Chain;
pub use checkpoint::{
    Checkpoint, CheckpointDirectory, CheckpointError, FetchedInput, NeededInput, OutputPiece, Stage,
};
pub use client::{
    AttemptSummary, ClientError, ClusterClient, ClusterPlace, CommandOutcome, FollowOptions, HistoryLine,
    JobCommand, JobDetail, JobPhase, JobSummary, LiveAttempt, LogStream, OnInterrupt, Patience,
    PreemptionEnd, PreemptionSummary, RestoreSummary, ResumeSummary, SideFileSource, SubmitOptions,
    TaskCommand, TaskSummary, WorkerSummary,
};
pub use cluster_directory::{ClusterDirectory, ClusterDirectoryError, CoordinatorRecord, DirectoryLock};
pub use command::{CommandError, CommandPlace, RunningCommand, TakeOutput};
pub use coordinator::{
    CoordinatorConfiguration, CoordinatorError, ReplayError, ReplayedEvent, replay_journal, run_coordinator,
};
pub use counters::{
    Counter, CounterValues, Counters, UserCounter, counter, set_user_counters, user_counters,
};
pub use directory_mark::{DirectoryKind, DirectoryMarkError};
pub use embedded::run_embedded;
pub use journal::{FsyncPolicy, JournalError};
pub use output::{OutputReservation, check_output};
pub use plan::{CheckpointSupport, EmbeddedSettings, JobPlan, ProgressMode};
pub use progress::{JobProgress, PhaseProgress};
pub use report::{JobEnd, JobError, JobReport, PartReport};
pub use task::{
    Ask, Boundary, Position, PositionUnit, Presence, ReadPosition, Script, SuspendHooks, TaskContext,
    TaskError, TaskProgress, is_gone, no_try_helps, progress, task_process_main, task_process_requested,
};
pub use text::{one_line, several_lines};
pub use transport::{Secret, SecretError};
pub use units::{ByteSize, ByteSizeError, parse_time};
pub use worker::{PageOut, SuspendRules, WorkerConfiguration, WorkerError, run_worker};
