//! The worker: owns a machine's slots and supervises the attempts that run in them.
//!
//! Owns the attempts' processes, their environment and their files, and in a cluster the connection to the
//! coordinator. Does not own any decision about which attempt runs: it does what the coordinator tells it and
//! reports what happened.
//!
//! ```text
//! start -> link (connections) -> registration (one number) -> daemon (the loop) -> attempt (one process)
//!   stop     exchange, connection_log, introduction job, preparation, admission     hang, isolation, logs, start_error
//! ```

mod admission;
mod attempt;
mod configuration;
mod connection_log;
mod consolidation;
mod daemon;
mod disk;
mod environment;
mod error;
mod exchange;
mod hang;
mod introduction;
mod isolation;
mod job;
mod link;
mod logs;
mod moves;
mod outfit;
mod paths;
mod preparation;
mod registration;
mod segment_memory;
mod settings;
mod start;
mod start_error;
mod stop;
#[cfg(test)]
mod tests;
mod ticks;
mod worker_directory;

pub(crate) use configuration::cores;
pub use configuration::{
    IsolationMode, IsolationRules, LeaveRules, OnTerminate, PageOut, SuspendRules, WorkerConfiguration,
};
pub(crate) use daemon::Worker;
pub use error::WorkerError;
pub(crate) use settings::WorkerSettings;
pub use start::run_worker;
