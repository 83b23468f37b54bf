//! The live runtime of napreduce: coordinator, worker and task processes.
//!
//! Owns how a job really runs: processes, messages, files of the output directory, progress for people. Does not own
//! the rules about jobs, tasks and slots (`napreduce-core`), how records are laid out (`napreduce-data`), nor what a
//! user writes (`napreduce`, which implements [`JobBody`] and calls [`run_embedded`]).

mod body;
mod coordinator;
mod counters;
mod embedded;
mod output;
mod path_bytes;
mod plan;
mod process;
mod progress;
mod protocol;
mod report;
mod task;
mod worker;

pub use body::{Definitions, JobBody, MapResult, MapTask, PartOutput, ReduceResult, ReduceTask, Split};
pub use counters::{Counter, CounterValues, Counters, UserCounter, counter};
pub use embedded::run_embedded;
pub use plan::{EmbeddedSettings, JobPlan, ProgressMode};
pub use report::{JobError, JobReport, PartReport};
pub use task::{
    Position, PositionUnit, TaskContext, TaskError, TaskProgress, task_process_main, task_process_requested,
};
