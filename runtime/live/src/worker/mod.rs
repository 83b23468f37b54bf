//! The worker: owns a machine's slots and supervises the attempts that run in them.
//!
//! Owns the attempts' processes, their environment and their files. Does not own any decision about which attempt
//! runs: it does what the coordinator tells it and reports what happened.

mod attempt;
mod daemon;

pub(crate) use daemon::{Worker, WorkerSettings};
