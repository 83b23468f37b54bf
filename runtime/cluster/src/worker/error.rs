//! Errors that prevent or end a worker's daemon.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::blobs::BlobError;
use crate::cluster_directory::ClusterDirectoryError;
use crate::directory_mark::DirectoryMarkError;
use crate::transport::TransportError;

/// An error of a worker's daemon.
#[derive(Debug, Error)]
pub enum WorkerError {
    /// The name is invalid.
    #[error(
        "invalid worker name {name:?}; use up to 64 letters, digits, '-', '_' and '.', not beginning with '.'"
    )]
    Name {
        /// The requested name.
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
        /// The stored name.
        found: String,
        /// The requested name.
        asked: String,
    },
    /// Another daemon uses the directory.
    #[error(
        "another worker is running in {}; stop it first, or choose another name or directory",
        .path.display()
    )]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// Control groups are required but unavailable.
    #[error(
        "no control groups for tasks: {why}; run the worker as root or in a delegated group, or omit --isolation"
    )]
    Isolation {
        /// The missing requirement.
        why: String,
    },
    /// The directory is not a worker's.
    #[error(transparent)]
    Mark(#[from] DirectoryMarkError),
    /// The cluster directory cannot be used.
    #[error(transparent)]
    ClusterDirectory(#[from] ClusterDirectoryError),
    /// The coordinator permanently refuses this worker.
    #[error("the coordinator at {address} rejected this worker: {reason}")]
    NotLetIn {
        /// The coordinator's address.
        address: String,
        /// Its reason, or the meaning of its answer.
        reason: String,
    },
    /// A live worker has the same name.
    #[error("the coordinator rejected this worker: {reason}")]
    NameTaken {
        /// The holder of the name, and a remedy.
        reason: String,
    },
    /// The data server cannot listen.
    #[error("cannot serve map output: {0}")]
    DataServer(#[from] TransportError),
    /// Programs and side files cannot be kept.
    #[error("cannot store programs: {0}")]
    Blobs(String),
    /// A system call failed.
    #[error("cannot {doing}: {source}")]
    Io {
        /// The failed operation and its object.
        doing: String,
        /// The system's error.
        source: io::Error,
    },
}

impl WorkerError {
    /// Returns the exit status: 2 if another directory or name has to be given, else 1.
    pub fn exit_status(&self) -> u8 {
        match self {
            WorkerError::Name { .. }
            | WorkerError::OtherName { .. }
            | WorkerError::NameTaken { .. } => 2,
            WorkerError::Mark(error) => error.exit_status(),
            WorkerError::ClusterDirectory(error) => error.exit_status(),
            _ => 1,
        }
    }

    pub(super) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> WorkerError {
        move |source| WorkerError::Io {
            doing: doing.into(),
            source,
        }
    }
}

impl From<BlobError> for WorkerError {
    fn from(error: BlobError) -> WorkerError {
        WorkerError::Blobs(error.to_string())
    }
}
