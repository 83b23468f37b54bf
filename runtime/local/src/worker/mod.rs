//! The worker: provides a machine's slots and supervises the attempts that run in them. It follows the
//! coordinator's orders and reports results.
//!
//! ```text
//! daemon (the loop) -> attempt (one process)
//!   job, launch, moves, consolidation       admission, hang, isolation, start_error
//! ```

mod admission;
mod attempt;
mod configuration;
mod consolidation;
mod daemon;
mod environment;
mod hang;
mod isolation;
mod job;
mod launch;
mod moves;
mod preparations;
#[cfg(test)]
mod scripted;
mod segment_memory;
mod settings;
mod start_error;
mod ticks;

pub use configuration::{
    IsolationMode, IsolationRules, PageOut, SuspendRules, TASK_SILENCE_MAX, cores,
};
pub use daemon::Worker;
pub use environment::{AttemptLogs, DiskChange, Environment, Prepared, Preparing, WatchDisk};
pub use isolation::Isolation;
pub use segment_memory::SegmentMemory;
pub use settings::{Membership, WorkerSettings};
pub use ticks::ticks;
