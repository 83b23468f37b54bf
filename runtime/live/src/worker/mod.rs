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
#[cfg(feature = "daemon")]
mod cluster_configuration;
#[cfg(feature = "daemon")]
mod cluster_environment;
mod configuration;
#[cfg(feature = "daemon")]
mod connection_log;
mod consolidation;
mod daemon;
mod disk;
mod environment;
#[cfg(feature = "daemon")]
mod error;
#[cfg(feature = "daemon")]
mod exchange;
mod hang;
#[cfg(feature = "daemon")]
mod introduction;
mod isolation;
mod job;
#[cfg(feature = "daemon")]
mod link;
mod logs;
mod moves;
mod outfit;
mod paths;
#[cfg(feature = "daemon")]
mod preparation;
#[cfg(feature = "daemon")]
mod registration;
mod segment_memory;
mod settings;
#[cfg(feature = "daemon")]
mod start;
mod start_error;
#[cfg(feature = "daemon")]
mod stop;
#[cfg(test)]
mod tests;
mod ticks;
#[cfg(feature = "daemon")]
mod worker_directory;

#[cfg(feature = "daemon")]
pub use cluster_configuration::{LeaveRules, OnTerminate, WorkerConfiguration};
pub(crate) use configuration::cores;
pub use configuration::{IsolationMode, IsolationRules, PageOut, SuspendRules};
pub(crate) use daemon::Worker;
#[cfg(feature = "daemon")]
pub use error::WorkerError;
pub(crate) use settings::WorkerSettings;
#[cfg(feature = "daemon")]
pub use start::run_worker;
