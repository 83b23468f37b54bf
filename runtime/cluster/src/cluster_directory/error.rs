//! Errors of a cluster directory; each message names the directory and a remedy.

use std::io;
use std::path::PathBuf;

use napreduce_local::whom;
use thiserror::Error;

use crate::directory_mark::DirectoryMarkError;
use crate::transport::SecretError;

/// An error of a cluster directory.
#[derive(Debug, Error)]
pub enum ClusterDirectoryError {
    /// Neither a flag nor the environment names it.
    #[error("no cluster directory: HOME is not set; pass --dir DIR or set NAPREDUCE_DIR")]
    Nowhere,
    /// It does not exist.
    #[error("there is no cluster directory {}; start a cluster with: nap up --dir {}", .path.display(), .path.display())]
    Missing {
        /// The directory.
        path: PathBuf,
    },
    /// Other users have access.
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
    /// It belongs to another user.
    #[error(
        "cluster directory {} belongs to {}, not to you ({}); choose another with --dir",
        .path.display(), whom(*.owner), whom(*.user)
    )]
    OfAnother {
        /// The directory.
        path: PathBuf,
        /// The owner's user id.
        owner: u32,
        /// This process's user id.
        user: u32,
    },
    /// No coordinator has published its address.
    #[error("no coordinator is running for {}; start one with: nap up --dir {}", .path.display(), .path.display())]
    NoCoordinator {
        /// The directory.
        path: PathBuf,
    },
    /// Another coordinator is running.
    #[error(
        "a coordinator ({running}) is already running for {}; stop it first or choose another directory with --dir",
        .path.display()
    )]
    CoordinatorRuns {
        /// The directory.
        path: PathBuf,
        /// The running process, as far as known.
        running: String,
    },
    /// Another `nap up` is running.
    #[error(
        "nap up ({running}) is already running for {}; end it first, add a worker to it with nap worker, or choose \
         another directory with --dir",
        .path.display()
    )]
    UpRuns {
        /// The directory.
        path: PathBuf,
        /// The running process, as far as known.
        running: String,
    },
    /// No `nap up` is running.
    #[error("no nap up is running for {}{}", .path.display(), without_up(*.coordinator))]
    NoUp {
        /// The directory.
        path: PathBuf,
        /// The process of a coordinator that runs without `nap up`.
        coordinator: Option<u32>,
    },
    /// The coordinator's record is invalid.
    #[error("{} is damaged: {reason}; restart the coordinator to rewrite it", .path.display())]
    DamagedRecord {
        /// The file.
        path: PathBuf,
        /// The defect.
        reason: String,
    },
    /// It is not a cluster directory.
    #[error(transparent)]
    Mark(#[from] DirectoryMarkError),
    /// The secret is not available.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// A system call failed.
    #[error("cannot {doing} {}: {source}", .path.display())]
    Io {
        /// The failed operation.
        doing: &'static str,
        /// Its path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// Returns the remedy if no `nap up` is running.
fn without_up(coordinator: Option<u32>) -> String {
    match coordinator {
        Some(process) => {
            format!(
                "; its coordinator (process {process}) was started without it: end that process where it was started"
            )
        }
        None => " on this host; name the directory of a running cluster with --dir".to_owned(),
    }
}

impl ClusterDirectoryError {
    /// Returns the exit status: 2 if another directory has to be given, else 1.
    pub fn exit_status(&self) -> u8 {
        match self {
            ClusterDirectoryError::Mark(error) => error.exit_status(),
            _ => 1,
        }
    }

    /// Returns whether the error means only that no coordinator is running.
    pub fn is_absence(&self) -> bool {
        matches!(
            self,
            ClusterDirectoryError::Missing { .. }
                | ClusterDirectoryError::NoCoordinator { .. }
                | ClusterDirectoryError::NoUp { .. }
        )
    }

    pub(super) fn io(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| ClusterDirectoryError::Io {
            doing,
            path,
            source,
        }
    }
}
