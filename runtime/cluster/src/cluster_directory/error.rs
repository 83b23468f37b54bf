//! What can be wrong with a cluster directory.
//!
//! Owns the reasons and their wording: each names the directory and what to do. Does not own what a secret
//! file can have wrong (`transport`).

use std::io;
use std::path::PathBuf;

use napreduce_local::whom;
use napreduce_protocol::SecretError;
use thiserror::Error;

use crate::directory_mark::DirectoryMarkError;

/// A cluster directory that cannot be used as asked.
#[derive(Debug, Error)]
pub enum ClusterDirectoryError {
    /// Neither a flag nor the environment says where it is.
    #[error("no cluster directory: HOME is not set; pass --dir DIR or set NAPREDUCE_DIR")]
    Nowhere,
    /// It does not exist.
    #[error("there is no cluster directory {}; start a cluster with: nap up --dir {}", .path.display(), .path.display())]
    Missing {
        /// The directory.
        path: PathBuf,
    },
    /// Others may look into it.
    #[error(
        "cluster directory {} is open to others (mode {mode:04o}); run: chmod 700 {}",
        .path.display(), .path.display()
    )]
    Exposed {
        /// The directory.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// It is somebody else's.
    #[error(
        "cluster directory {} belongs to {}, not to you ({}); choose another with --dir",
        .path.display(), whom(*.owner), whom(*.user)
    )]
    OfAnother {
        /// The directory.
        path: PathBuf,
        /// The id of its owner.
        owner: u32,
        /// The id of the user who asks.
        user: u32,
    },
    /// No coordinator has said where it is.
    #[error("no coordinator is running for {}; start one with: nap up --dir {}", .path.display(), .path.display())]
    NoCoordinator {
        /// The directory.
        path: PathBuf,
    },
    /// Another one runs already.
    #[error(
        "a coordinator ({running}) is already running for {}; stop it first or choose another directory with --dir",
        .path.display()
    )]
    CoordinatorRuns {
        /// The directory.
        path: PathBuf,
        /// Which one, as far as is known.
        running: String,
    },
    /// Another `nap up` runs already.
    #[error(
        "nap up ({running}) is already running for {}; end it first, add a worker to it with nap worker, or choose \
         another directory with --dir",
        .path.display()
    )]
    UpRuns {
        /// The directory.
        path: PathBuf,
        /// Which one, as far as is known.
        running: String,
    },
    /// The coordinator's own description cannot be understood.
    #[error("{} is damaged: {reason}; restart the coordinator, which writes it anew", .path.display())]
    DamagedRecord {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// It is no cluster directory.
    #[error(transparent)]
    Mark(#[from] DirectoryMarkError),
    /// The secret cannot be had.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The system does not let us.
    #[error("cannot {doing} {}: {source}", .path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl ClusterDirectoryError {
    /// The exit status of a program that ends with this: 2 when another directory has to be given, else 1.
    pub fn exit_status(&self) -> u8 {
        match self {
            ClusterDirectoryError::Mark(error) => error.exit_status(),
            _ => 1,
        }
    }

    /// Whether it says only that no coordinator is there.
    pub fn is_absence(&self) -> bool {
        matches!(self, ClusterDirectoryError::Missing { .. } | ClusterDirectoryError::NoCoordinator { .. })
    }

    pub(super) fn io(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| ClusterDirectoryError::Io { doing, path, source }
    }
}
