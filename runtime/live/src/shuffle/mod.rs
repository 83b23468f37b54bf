//! The data server of a worker: it answers the reduces, workers and coordinators that want segments or logs of it.
//!
//! Owns the serving. Does not own the segment files (`napreduce-data`), authentication and encryption
//! (`napreduce-protocol`), nor how a reduce gathers its inputs (`napreduce-task`).

mod server;
#[cfg(test)]
mod tests;

pub(crate) use server::{DataServer, DataServerSettings, ServedFiles};
