//! Why a step of claim or commit did not succeed, and what that means for the job.
//!
//! Owns the difference between what may pass, what somebody else did, and what nobody can mend. Does not own
//! how often something is tried again (`coordinator`).

use std::io;

use napreduce_protocol::JobError;

/// A step that did not succeed.
#[derive(Debug)]
pub enum Trouble {
    /// The storage is away, full or closed at this moment: it is to be tried again.
    Passing {
        /// What was being done, and what the system said.
        what: String,
        /// Nothing can be said of the directory at all, as when its storage is not mounted.
        away: bool,
    },
    /// Another run has the directory by now, which is not to be touched.
    Taken {
        /// Who, in words.
        by: String,
    },
    /// What the output is made of is gone or was changed.
    Final(String),
}

impl Trouble {
    /// A call that failed while something was done.
    pub(super) fn io(doing: impl Into<String>, error: &io::Error) -> Trouble {
        Trouble::Passing { what: format!("cannot {}: {error}", doing.into()), away: is_away(error) }
    }

    /// Why the job has no output because of it.
    pub(crate) fn in_words(&self, output: &std::path::Path) -> String {
        match self {
            Trouble::Passing { what, .. } | Trouble::Final(what) => what.clone(),
            Trouble::Taken { by } => format!("output directory {} was taken by {by}", output.display()),
        }
    }
}

/// Whether an error says that the storage as a whole cannot be had, rather than that it refuses one thing.
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

/// Of a directory that could not be claimed: then the job is refused.
pub(super) fn refused(path: &std::path::Path, trouble: Trouble) -> JobError {
    let path = path.display().to_string();
    match trouble {
        Trouble::Taken { .. } => JobError::OutputInUse { path },
        Trouble::Passing { what, .. } | Trouble::Final(what) => {
            JobError::OutputUnusable { path, source: io::Error::other(what) }
        }
    }
}
