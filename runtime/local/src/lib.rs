//! Runs jobs on one machine: the loops of coordinator and worker, attempts and their processes, output and commit.
//!
//! An embedded run uses only this crate. `napreduce-cluster` wraps the coordinator and the worker through the public
//! modules `chain`, `clock`, `coordinator`, `output`, `process`, `worker` and `world`. `napreduce-engine` contains the rules about
//! jobs, tasks and slots; `napreduce` implements `TaskRunner` and calls [`run_embedded`] for command lines, or
//! [`start_embedded`] and [`start_on_threads`] for programs that do more than run a job.
//!
//! A program is its own driver and its own task process:
//!
//! ```no_run
//! use napreduce_local::{EmbeddedSettings, run_embedded};
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
//!         task_process_main(&Program, None);
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
    "napreduce requires Linux 5.4 or later: it relies on pidfds and verified process stops"
);

pub mod chain;
pub mod clock;
pub mod coordinator;
mod embedded;
pub mod locked_file;
pub mod output;
mod outputs;
pub mod process;
mod progress;
mod side_file;
mod spans;
mod started_job;
mod user;
pub mod worker;
pub mod world;

pub use chain::{Chain, ChainKeeper, KeepChain};
pub use embedded::{
    EmbeddedSettings, interrupted, next_job, run_embedded, start_embedded, start_on_threads,
};
pub use output::{GuestOutput, OutputReservation, check_output, check_reads, named_output_files};
pub use progress::{ProgressDisplay, ProgressMode};
pub use side_file::{SIDE_FILE_BYTES_MAX, SideFileSource};
pub use spans::SPAN_TARGET;
pub use started_job::{JobLink, ProgressWatch, StartedJob};
pub use user::{current_user, whom};
pub use worker::{IsolationMode, IsolationRules, PageOut, SuspendRules};
