//! How map output reaches reduces: by path on the same host, by a connection to the worker that holds it elsewhere.
//!
//! Owns the gathering in the task process, the fetches it makes, and the data server in the worker that answers them.
//! Does not own the segment files (`napreduce-data`), authentication and encryption (`transport`), nor which outputs a
//! reduce reads (the engine).

mod fetch;
mod gather;
mod known;
mod line;
mod network;
mod server;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use napreduce_core::AttemptId;
use serde::{Deserialize, Serialize};

pub(crate) use gather::{Arrival, Gathered, Gathering};
pub(crate) use network::{DataNetwork, FetchLimits};
pub(crate) use server::{DataServer, DataServerSettings, ServedFiles};

/// The output of one map attempt, and where a reduce finds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MapInput {
    pub(crate) attempt: AttemptId,
    pub(crate) place: Place,
}

/// Where a sealed segment is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Place {
    /// A file that this host can read: it is mapped where it is, without a copy.
    Local(#[serde(with = "crate::path_bytes")] PathBuf),
    /// The data server of the worker that holds it, `HOST:PORT`.
    Remote(String),
}
