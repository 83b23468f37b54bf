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
//! use napreduce_live::{
//!     Definitions, EmbeddedSettings, TaskRunner, JobPlan, MapResult, MapTask, PartOutput, ReduceResult, ReduceTask, Split,
//!     TaskContext, TaskError, run_embedded, task_process_main, task_process_requested,
//! };
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

#[cfg(not(target_os = "linux"))]
compile_error!(
    "napreduce runs on Linux only, from 5.4 on: how tasks are watched and suspended no other system offers"
);

mod blobs;
mod chain;
mod client;
mod cluster_directory;
mod coordinator;
mod directory_mark;
mod embedded;
mod journal;
mod output;
mod progress;
mod random;
mod shuffle;
mod spans;
mod user;
mod worker;

pub use chain::Chain;
pub use client::{
    ClientError, ClusterClient, ClusterPlace, FollowOptions, LogRead, OnInterrupt, Patience, SideFileSource,
    SubmitOptions,
};
pub use cluster_directory::{ClusterDirectory, ClusterDirectoryError, CoordinatorRecord, DirectoryLock};
pub use coordinator::{
    CoordinatorConfiguration, CoordinatorError, JournalCheck, ReplayError, ReplayedBatch, check_journal,
    replay_journal, run_coordinator,
};
pub use directory_mark::{DirectoryKind, DirectoryMarkError};
pub use embedded::{EmbeddedSettings, interrupted, next_job, run_embedded};
pub use journal::{FsyncPolicy, JournalError};
pub use napreduce_protocol::printing;
pub use napreduce_protocol::{
    AttemptSummary, ByteSize, ByteSizeError, CheckpointSupport, CommandOutcome, Counter, CounterValues,
    Counters, Digest, DigestError, FileStamp, HistoryLine, InputSplit, JobCommand, JobDetail, JobEnd,
    JobError, JobPhase, JobPlan, JobProgress, JobReport, JobSummary, LiveAttempt, LogStream, MapTask,
    NamedPart, PartOutput, PartReport, PhaseProgress, PreemptionEnd, PreemptionSummary, QueueListing,
    QueueSlots, QueueSummary, ReduceTask, RestoreSummary, ResumeSummary, Secret, SecretError, Split,
    StorageScheme, SuspendedMemory, TaskCommand, TaskError, TaskPhase, TaskSummary, WorkerMemory,
    WorkerPhase, WorkerSummary, is_gone, no_try_helps, one_line, parse_time, protocol_versions,
    several_lines,
};
pub use napreduce_task::{
    Ask, Boundary, Checkpoint, CheckpointDirectory, CheckpointError, CheckpointStage, CommandError,
    CommandLine, CommandPlace, Definitions, Ended, FAILED_PART, FetchedInput, MapResult, NeededInput,
    OutputPiece, Position, PositionUnit, Presence, ReadPosition, ReduceResult, RunningCommand,
    SavedCheckpoint, Script, SuspendHooks, TakeOutput, TaskContext, TaskProgress, TaskRunner, UserCounter,
    counter, progress, set_object_stores, set_user_counters, task_process_main, task_process_requested,
    user_counters,
};
pub use output::{GuestOutput, OutputReservation, check_output, check_reads};
pub use progress::{ProgressDisplay, ProgressMode};
pub use spans::SPAN_TARGET;
pub use worker::{
    IsolationMode, IsolationRules, LeaveRules, OnTerminate, PageOut, SuspendRules, WorkerConfiguration,
    WorkerError, run_worker,
};
