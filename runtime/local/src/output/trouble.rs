//! Failures of claim and commit steps: transient, caused by another run, or permanent.

use std::io;

use napreduce_protocol::JobError;

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
        Trouble::Passing { what: format!("cannot {}: {error}", doing.into()), away: is_away(error) }
    }

    /// Describes why the job has no output.
    pub(crate) fn in_words(&self, output: &std::path::Path) -> String {
        match self {
            Trouble::Passing { what, .. } | Trouble::Final(what) => what.clone(),
            Trouble::Taken { by } => format!("output directory {} was taken by {by}", output.display()),
        }
    }
}

/// Returns whether an error means that the whole storage is unavailable.
pub(super) fn is_away(error: &io::Error) -> bool {
    let Some(code) = error.raw_os_error() else { return error.kind() == io::ErrorKind::NotFound };
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

/// Returns the error for a failed claim.
pub(super) fn refused(path: &std::path::Path, trouble: Trouble) -> JobError {
    let path = path.display().to_string();
    match trouble {
        Trouble::Taken { .. } => JobError::OutputInUse { path },
        Trouble::Passing { what, .. } | Trouble::Final(what) => {
            JobError::OutputUnusable { path, source: io::Error::other(what) }
        }
    }
}
