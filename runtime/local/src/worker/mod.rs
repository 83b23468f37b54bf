//! The worker: owns a machine's slots and supervises the attempts that run in them.
//!
//! Owns the attempts' processes, their environment and their files, and in a cluster the connection to the
//! coordinator. Does not own any decision about which attempt runs: it does what the coordinator tells it and
//! reports what happened.
//!
//! ```text
//! daemon (the loop) -> attempt (one process)
//!   job, outfit, moves, consolidation       admission, hang, isolation, start_error
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
mod moves;
mod outfit;
mod segment_memory;
mod settings;
mod start_error;
mod ticks;

pub use configuration::{IsolationMode, IsolationRules, PageOut, SuspendRules, TASK_SILENCE_MAX, cores};
pub use daemon::Worker;
pub use environment::{AttemptLogs, Environment, Prepared, Preparing, WatchDisk};
pub use isolation::Isolation;
pub use segment_memory::SegmentMemory;
pub use settings::WorkerSettings;
pub use ticks::ticks;
