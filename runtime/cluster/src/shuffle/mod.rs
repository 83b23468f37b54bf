//! Map outputs between workers: which there are, and the data server that answers the reduces, workers and
//! coordinators that want segments or logs.
//!
//! Owns the serving, and a job's outputs as its log tells them. Does not own the segment files
//! (`napreduce-data`), authentication and encryption (`napreduce-protocol`), nor how a reduce gathers its
//! inputs (`napreduce-task`).

mod log_extent;
mod server;
#[cfg(test)]
mod tests;

pub(crate) use log_extent::LogExtent;
pub(crate) use server::{DataServer, DataServerSettings, ServedFiles};
