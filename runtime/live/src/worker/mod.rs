//! The worker: owns a machine's slots and supervises the attempts that run in them.
//!
//! Owns the attempts' processes, their environment and their files, and in a cluster the connection to the coordinator.
//! Does not own any decision about which attempt runs: it does what the coordinator tells it and reports what happened.
//!
//! ```text
//! start -> link (connections) -> life (one number) -> daemon (the loop) -> attempt (one process)
//!            exchange, standing               job, preparation, admission     hang, logs, execution
//! ```

mod admission;
mod attempt;
mod configuration;
mod daemon;
mod disk;
mod error;
mod exchange;
mod execution;
mod hang;
mod home;
mod job;
mod life;
mod link;
mod logs;
mod outfit;
mod paths;
mod preparation;
mod standing;
mod start;
mod station;
#[cfg(test)]
mod tests;

pub use configuration::{PageOut, SuspendRules, WorkerConfiguration};
pub(crate) use daemon::{Worker, WorkerSettings};
pub use error::WorkerError;
pub use start::run_worker;
