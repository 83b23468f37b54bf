//! The daemon of a worker: the local worker's loop with a directory, a data server and a coordinator
//! connection.
//!
//! ```text
//! start -> link (connections) -> registration (one number) -> the local worker's loop
//!   stop     exchange, connection_log, introduction          environment: logs, paths, disk, preparation
//! ```

mod configuration;
mod connection_log;
mod disk;
mod environment;
mod error;
mod exchange;
mod introduction;
mod link;
mod logs;
mod paths;
mod preparation;
mod registration;
mod start;
mod stop;
mod worker_directory;

pub use configuration::{LeaveRules, OnTerminate, WorkerConfiguration};
pub use error::WorkerError;
pub use start::{StartProcesses, run_worker, worker_daemon};
pub use worker_directory::end_leftovers;
