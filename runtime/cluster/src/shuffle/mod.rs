//! Serves map outputs and logs: the data server for reduces, other workers and the coordinator.

mod log_extent;
mod server;
#[cfg(test)]
mod tests;

pub(crate) use log_extent::LogExtent;
pub(crate) use server::{DataServer, DataServerSettings, ServedFiles};
