//! What can go wrong between a client and its cluster.
//!
//! Owns the texts and the exit statuses they lead to. Does not own how a job can fail (`report`).

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use napreduce_protocol::{JobError, TransportError};
use thiserror::Error;

use super::ClusterPlace;
use crate::cluster_directory::ClusterDirectoryError;

/// Of a program whose service is not there; what `sysexits.h` calls it.
const UNAVAILABLE: u8 = 69;

/// Why a cluster did not do what it was asked.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The cluster is not named as it should be.
    #[error("{0}")]
    Usage(String),
    /// The cluster directory cannot be used.
    #[error(transparent)]
    Directory(#[from] ClusterDirectoryError),
    /// No coordinator answered in time.
    #[error("no coordinator answers for {place} since {waited:.0?}: {last}; {advice}")]
    Unreachable {
        /// Which cluster.
        place: String,
        /// How long it was tried.
        waited: Duration,
        /// What the last try led to.
        last: String,
        /// What to do.
        advice: String,
    },
    /// Somebody is there, but will never answer.
    #[error("cannot talk to the coordinator of {place}: {reason}")]
    Incompatible {
        /// Which cluster.
        place: String,
        /// Why not.
        reason: String,
    },
    /// The coordinator will not do it.
    #[error("{reason}")]
    Refused {
        /// The exit status for whoever asked: 1 it failed, 2 it was asked wrongly.
        status: u8,
        /// Why not.
        reason: String,
    },
    /// A program or side file cannot be sent.
    #[error("cannot read {path} to send it along: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A device, a pipe or a directory.
    #[error("cannot take {path} along: it is not a regular file")]
    NotAFile {
        /// What was named.
        path: PathBuf,
    },
    /// A side file that is larger than one may be.
    #[error(
        "cannot take {path} along: it has more than {limit} bytes; allow more with --conf side-file-max=SIZE, or put it \
         on storage that all workers see and name it by its path there"
    )]
    FileTooLarge {
        /// The file.
        path: PathBuf,
        /// Bytes that a side file may have.
        limit: u64,
    },
    /// The program cannot be executed by anybody.
    #[error("{0}")]
    Program(String),
    /// The connection broke, and asking again might do it twice.
    #[error("the connection broke before {place} answered; look with `nap task list` before trying again")]
    Unanswered {
        /// Which cluster.
        place: String,
    },
    /// Output that was asked for cannot be written.
    #[error("cannot write: {0}")]
    Output(io::Error),
    /// Something the client itself needs could not be had.
    #[error("cannot {doing}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The coordinator answered another question.
    #[error("internal error: the coordinator answered something else: {answer}; please report it")]
    Nonsense {
        /// What it said.
        answer: String,
    },
}

impl ClientError {
    /// The exit status of a program that ends with it: 69 when no coordinator did anything because none was
    /// there, or none that this program can talk to.
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
            | ClientError::Nonsense { .. } => 1,
        }
    }

    pub(super) fn incompatible(place: &ClusterPlace, error: &TransportError) -> ClientError {
        ClientError::Incompatible { place: place.to_string(), reason: error.to_string() }
    }

    pub(super) fn nonsense(answer: &impl std::fmt::Debug) -> ClientError {
        let answer: String = format!("{answer:?}").chars().take(80).collect();
        ClientError::Nonsense { answer }
    }
}

impl From<ClientError> for JobError {
    fn from(error: ClientError) -> JobError {
        JobError::Cluster { reason: error.to_string(), exit_status: error.exit_status() }
    }
}
