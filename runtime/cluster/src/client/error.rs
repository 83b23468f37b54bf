//! Errors of a client, and their exit statuses.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use napreduce_protocol::JobError;
use thiserror::Error;

use super::ClusterPlace;
use crate::cluster_directory::ClusterDirectoryError;
use crate::transport::TransportError;

/// `EX_UNAVAILABLE` of `sysexits.h`.
const UNAVAILABLE: u8 = 69;

/// An error of a request to a cluster.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The cluster's name is invalid.
    #[error("{0}")]
    Usage(String),
    /// The cluster directory cannot be used.
    #[error(transparent)]
    Directory(#[from] ClusterDirectoryError),
    /// No coordinator answered in time.
    #[error("no coordinator answers for {place} after {waited:.0?}: {last}; {advice}")]
    Unreachable {
        /// The cluster.
        place: String,
        /// The time spent trying.
        waited: Duration,
        /// The last error.
        last: String,
        /// The remedy.
        advice: String,
    },
    /// A process answers, but it is incompatible or foreign.
    #[error("cannot talk to the coordinator of {place}: {reason}")]
    Incompatible {
        /// The cluster.
        place: String,
        /// The reason.
        reason: String,
    },
    /// The coordinator refused the request.
    #[error("{reason}")]
    Refused {
        /// The exit status: 1 for a failure, 2 for a wrong request.
        status: u8,
        /// The reason.
        reason: String,
    },
    /// A program or side file cannot be sent.
    #[error("cannot read {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The path is a device, a pipe or a directory.
    #[error("cannot send {path}: it is not a regular file")]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// A side file exceeds the limit.
    #[error(
        "cannot send {path}: it has more than {limit} bytes; allow more with --conf side-file-max=SIZE, or put it on \
         storage that all workers see and name it by its path there"
    )]
    FileTooLarge {
        /// The file.
        path: PathBuf,
        /// The limit, in bytes.
        limit: u64,
    },
    /// The program is not executable on any supported machine.
    #[error("{0}")]
    Program(String),
    /// The connection broke; a retry might repeat the action.
    #[error(
        "the connection broke before {place} answered; check with `nap task list` before trying again"
    )]
    Unanswered {
        /// The cluster.
        place: String,
    },
    /// The requested output cannot be written.
    #[error("cannot write: {0}")]
    Output(io::Error),
    /// The client lacks a local resource.
    #[error("cannot {doing}: {source}")]
    Io {
        /// The failed operation.
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The answer does not match the request.
    #[error("protocol error: unexpected answer {answer}; please report it")]
    UnexpectedAnswer {
        /// The answer.
        answer: String,
    },
}

impl ClientError {
    /// Returns the exit status: 69 if no coordinator was reachable or compatible, so that nothing was done.
    pub fn exit_status(&self) -> u8 {
        match self {
            ClientError::Refused { status, .. } => *status,
            ClientError::Directory(error) if error.is_absence() => UNAVAILABLE,
            ClientError::Unreachable { .. } | ClientError::Incompatible { .. } => UNAVAILABLE,
            ClientError::Usage(_)
            | ClientError::Directory(_)
            | ClientError::File { .. }
            | ClientError::NotAFile { .. }
            | ClientError::FileTooLarge { .. }
            | ClientError::Program(_) => 2,
            ClientError::Unanswered { .. }
            | ClientError::Output(_)
            | ClientError::Io { .. }
            | ClientError::UnexpectedAnswer { .. } => 1,
        }
    }

    pub(super) fn incompatible(place: &ClusterPlace, error: &TransportError) -> ClientError {
        ClientError::Incompatible {
            place: place.to_string(),
            reason: error.to_string(),
        }
    }

    pub(super) fn unexpected(answer: &impl std::fmt::Debug) -> ClientError {
        let answer: String = format!("{answer:?}").chars().take(80).collect();
        ClientError::UnexpectedAnswer { answer }
    }
}

impl From<ClientError> for JobError {
    fn from(error: ClientError) -> JobError {
        JobError::Cluster {
            reason: error.to_string(),
            exit_status: error.exit_status(),
        }
    }
}
