//! Map outputs over the network: reduces fetch them, and the data server of a worker serves them and logs.

mod data_connection;
mod fetch;
#[cfg(feature = "daemon")]
mod log_extent;
#[cfg(feature = "daemon")]
mod server;
#[cfg(test)]
mod tests;

pub use fetch::start_fetch;
#[cfg(feature = "daemon")]
pub(crate) use log_extent::LogExtent;
#[cfg(feature = "daemon")]
pub(crate) use server::{DataServer, DataServerSettings, ServedFiles};
