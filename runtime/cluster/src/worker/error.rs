//! Why a worker's daemon could not start, or ended.
//!
//! Owns the reasons and their wording. Does not own what goes wrong with an attempt (`TaskError`).

use std::io;
use std::path::PathBuf;

use napreduce_protocol::TransportError;
use thiserror::Error;

use crate::blobs::BlobError;
use crate::cluster_directory::ClusterDirectoryError;
use crate::directory_mark::DirectoryMarkError;

/// A worker's daemon that cannot do what it was asked for.
#[derive(Debug, Error)]
pub enum WorkerError {
    /// The name cannot be that of a directory and a worker.
    #[error(
        "{name:?} cannot be a worker's name; use up to 64 letters, digits, '-', '_' and '.', not '.' in front"
    )]
    Name {
        /// What was asked for.
        name: String,
    },
    /// The directory belongs to a worker of another name.
    #[error(
        "{} belongs to worker {found}, not {asked}; leave out the name or choose another directory",
        .path.display()
    )]
    OtherName {
        /// The directory.
        path: PathBuf,
        /// Whose it is.
        found: String,
        /// Who was to have it.
        asked: String,
    },
    /// Another daemon runs there.
    #[error(
        "another worker is running in {}; stop it first, or choose another name or directory",
        .path.display()
    )]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// Tasks were to be put into control groups.
    #[error(
        "no control groups for tasks: {why}; run the worker as root or where groups are delegated to it, or leave out --isolation"
    )]
    Isolation {
        /// What is missing.
        why: String,
    },
    /// The directory is not a worker's.
    #[error(transparent)]
    Mark(#[from] DirectoryMarkError),
    /// The cluster directory cannot be used.
    #[error(transparent)]
    ClusterDirectory(#[from] ClusterDirectoryError),
    /// The coordinator will never let this worker in as it is.
    #[error("the coordinator at {address} does not let this worker in: {reason}")]
    NotLetIn {
        /// Where it was asked.
        address: String,
        /// What it said, or what its answer means.
        reason: String,
    },
    /// Another worker of this name is in the cluster, and alive.
    #[error("the coordinator does not let this worker in: {reason}")]
    NameTaken {
        /// Who has the name, and what to do.
        reason: String,
    },
    /// The data server cannot listen.
    #[error("cannot serve map output: {0}")]
    DataServer(#[from] TransportError),
    /// Programs and side files cannot be kept.
    #[error("cannot keep programs: {0}")]
    Blobs(String),
    /// The system does not let us.
    #[error("cannot {doing}: {source}")]
    Io {
        /// What was being done, to what.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
}

impl WorkerError {
    /// The exit status of a program that ends with this: 2 when another directory or name has to be given,
    /// else 1.
    pub fn exit_status(&self) -> u8 {
        match self {
            WorkerError::Name { .. } | WorkerError::OtherName { .. } | WorkerError::NameTaken { .. } => 2,
            WorkerError::Mark(error) => error.exit_status(),
            WorkerError::ClusterDirectory(error) => error.exit_status(),
            _ => 1,
        }
    }

    pub(super) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> WorkerError {
        move |source| WorkerError::Io { doing: doing.into(), source }
    }
}

impl From<BlobError> for WorkerError {
    fn from(error: BlobError) -> WorkerError {
        WorkerError::Blobs(error.to_string())
    }
}
