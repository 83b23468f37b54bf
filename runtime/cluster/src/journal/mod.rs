//! The coordinator's journal: every event handed to the engine, kept before what follows from it is
//! carried out.
//!
//! Owns the files, their form, the cutting of a torn tail, and compaction by snapshot. Does not own what an
//! entry means: its payload is JSON text of whoever writes it.
//!
//! ```text
//! journal-00000003.log        frames since snapshot 3: the header first, then entries
//! snapshot-00000003.json   everything before, none for number 1: the header, then segments of a JSON value
//! frame                       length u32, crc32c u32, both little-endian, then that many bytes
//! ```
//!
//! A snapshot is written while the next journal file is appended to already. It counts when it is complete
//! under its name; then the files of smaller numbers are removed. A coordinator that dies before goes on from
//! the snapshot before and every file since.

mod directory;
mod file;
mod frame;
mod snapshot;
#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) use directory::{Journal, Recovered};
use napreduce_engine::EngineSettings;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

/// Version of the files' form and of the entries in them.
pub(crate) const JOURNAL_VERSION: u32 = 7;

/// When what is written to the journal is forced to the disk. A coordinator that is killed loses nothing
/// whatever is chosen here; only a machine that loses power does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FsyncPolicy {
    /// Before anything that follows from it is carried out.
    Always,
    /// At this interval.
    Interval(Duration),
    /// When the system does it by itself.
    Never,
}

/// The first frame of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) version: u32,
    /// Chosen at random when the journal was begun: numbers of jobs and workers mean something only
    /// within it.
    pub(crate) journal: u64,
    /// The engine's time 0, in microseconds since 1970.
    pub(crate) epoch_micros: u64,
    /// How it was decided when this file was begun: otherwise something else would be made of the
    /// same events.
    #[serde(flatten)]
    pub(crate) rules: EngineRules,
}

/// All that an engine decides by.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct EngineRules {
    pub(crate) settings: EngineSettings,
    /// The policy and its values, as `PolicyChoice::to_json` writes them.
    pub(crate) scheduler: Value,
}

/// The journal cannot be read or written.
#[derive(Debug, Error)]
pub enum JournalError {
    /// The system said no.
    #[error("cannot {doing} {path}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A frame in the middle is not what was written.
    #[error(
        "{path} is damaged at byte {offset}: {what}; what comes after cannot be trusted. Restore the file, or move the \
         directory away to begin anew without these jobs"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the frame begins.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// A journal file goes on from a snapshot that is not there.
    #[error(
        "{snapshot} is missing, and {journal} goes on from it: the jobs before are in there. Restore the file, or move \
         {directory} away to begin anew without these jobs"
    )]
    SnapshotMissing {
        /// The file that is missing.
        snapshot: PathBuf,
        /// The file that is there.
        journal: PathBuf,
        /// Where both belong.
        directory: PathBuf,
    },
    /// Written by another version of this program.
    #[error(
        "{path} has version {found}, and this program writes {JOURNAL_VERSION}; let the jobs end with the program that wrote \
         it, then move the directory away"
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
}

impl JournalError {
    fn io(doing: &'static str, path: &std::path::Path, source: io::Error) -> JournalError {
        JournalError::Io { doing, path: path.to_owned(), source }
    }
}
