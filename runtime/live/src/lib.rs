//! The live runtime of napreduce: coordinator, worker and task processes.
//!
//! Owns how a job really runs: processes, messages, files of the output directory, progress for people. Does not own
//! the rules about jobs, tasks and slots (`napreduce-core`), how records are laid out (`napreduce-data`), nor what a
//! user writes (`napreduce`, which implements [`JobBody`] and calls [`run_embedded`]).

mod body;
mod counters;
mod path_bytes;
mod plan;
mod report;
mod task;

pub use body::{Definitions, JobBody, MapResult, MapTask, PartOutput, ReduceResult, ReduceTask, Split};
pub use counters::{Counter, CounterValues, Counters, UserCounter, counter};
pub use plan::{EmbeddedSettings, JobPlan, ProgressMode};
pub use report::{JobError, JobReport, PartReport};
pub use task::{Position, PositionUnit, TaskContext, TaskError, TaskProgress};
