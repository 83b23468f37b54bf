//! Failures of claim and commit steps: transient, caused by another run, or permanent.

use std::io;
use std::path::Path;

use napreduce_protocol::JobError;

use super::storage::StorageError;

/// A failed step.
#[derive(Debug)]
pub enum Trouble {
    /// The storage is unreachable, full or closed; retry.
    Passing {
        /// The operation and the system's error.
        what: String,
        /// Whether the whole directory is unreachable, such as unmounted storage.
        away: bool,
    },
    /// Another run holds the directory. Its files must not be changed.
    Taken {
        /// The other run, for messages.
        by: String,
    },
    /// The files of the output were removed or changed, or the operation cannot succeed; do not retry.
    Final(String),
}

impl Trouble {
    /// Classifies the error of a failed call.
    pub(super) fn io(doing: impl Into<String>, error: &io::Error) -> Trouble {
        Trouble::Passing {
            what: format!("cannot {}: {error}", doing.into()),
            away: is_away(error),
        }
    }

    /// Describes why the job has no output.
    pub(crate) fn in_words(&self, output: &Path) -> String {
        match self {
            Trouble::Passing { what, .. } | Trouble::Final(what) => what.clone(),
            Trouble::Taken { by } => {
                format!("output directory {} was taken by {by}", output.display())
            }
        }
    }
}

impl From<StorageError> for Trouble {
    fn from(error: StorageError) -> Trouble {
        let what = error.to_string();
        Trouble::Passing {
            what,
            away: is_away(&error.into_system()),
        }
    }
}

/// Returns whether an error means that the whole storage is unavailable.
fn is_away(error: &io::Error) -> bool {
    let Some(code) = error.raw_os_error() else {
        return error.kind() == io::ErrorKind::NotFound;
    };
    let away = [
        libc::EIO,
        libc::ESTALE,
        libc::ENOENT,
        libc::ENXIO,
        libc::ENODEV,
        libc::ENOTCONN,
        libc::ETIMEDOUT,
        libc::EHOSTDOWN,
        libc::EHOSTUNREACH,
        libc::ENETUNREACH,
        libc::ECONNABORTED,
        libc::ECONNRESET,
        libc::ENOLINK,
        libc::EREMOTEIO,
        libc::ESHUTDOWN,
    ];
    away.contains(&code)
}

/// The reason why an output cannot be claimed.
#[derive(Debug)]
pub(super) enum ClaimError {
    /// It is not empty and must not be overwritten.
    Exists,
    /// Another run writes to it.
    InUse,
    /// It contains the work of a dead holder.
    Unfinished,
    Unusable(io::Error),
}

impl ClaimError {
    /// Returns the error for the user.
    pub(super) fn into_job_error(self, output: &Path) -> JobError {
        let path = output
            .display()
            .to_string()
            .trim_end_matches('/')
            .to_owned();
        match self {
            ClaimError::Exists => JobError::OutputExists { path },
            ClaimError::InUse => JobError::OutputInUse { path },
            ClaimError::Unfinished => JobError::OutputUnfinished { path },
            ClaimError::Unusable(source) => JobError::OutputUnusable { path, source },
        }
    }
}

impl From<io::Error> for ClaimError {
    fn from(error: io::Error) -> ClaimError {
        ClaimError::Unusable(error)
    }
}

impl From<StorageError> for ClaimError {
    fn from(error: StorageError) -> ClaimError {
        ClaimError::Unusable(error.into_system())
    }
}

impl From<Trouble> for ClaimError {
    fn from(trouble: Trouble) -> ClaimError {
        match trouble {
            Trouble::Taken { .. } => ClaimError::InUse,
            Trouble::Passing { what, .. } | Trouble::Final(what) => {
                ClaimError::Unusable(io::Error::other(what))
            }
        }
    }
}
