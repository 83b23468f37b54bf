//! The coordinator's write-ahead journal: events for the engine are stored before their effects are carried
//! out. Torn tails are truncated, and snapshots compact the journal. Entries are JSON texts whose meaning is
//! up to the caller.
//!
//! ```text
//! journal-00000003.log       frames since snapshot 3: the header first, then entries and marks
//! snapshot-00000003.json     everything before, none for number 1: the header, then segments of a JSON value
//! first frame, segment       length u32, crc32c u32, then that many bytes; all numbers are little-endian
//! other frames of a journal  length u32, crc32c of the frame before u32, settled length u64, crc32c u32, then the bytes
//! ```
//!
//! After a sync a mark is appended, a frame without bytes. The settled length is that of the file after the last sync:
//! a power loss cannot damage what is before it ([`frame`]). The header of a file contains the checksum of the last
//! frame of the file before.
//!
//! A snapshot is written while the next journal file is already appended to. It becomes valid when it is
//! complete under its name; then files with smaller numbers are removed. Until then, a coordinator recovers
//! from the previous snapshot and every later file.
//!
//! The file that is appended to is locked as long as it is open, so that there is one writer even if the lock file
//! of the cluster directory was removed.

#[cfg(test)]
mod crashes;
mod directory;
mod file;
mod frame;
mod snapshot;
mod survey;
#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) use directory::{Journal, Recovered, is_journal_file};
use napreduce_engine::EngineSettings;
use serde::{Deserialize, Serialize};
use serde_json::Value;
pub(crate) use survey::{Survey, SurveyedFile, survey};
use thiserror::Error;

/// Version of the format of files and entries.
pub(crate) const JOURNAL_VERSION: u32 = 11;
/// The oldest version that is read: its entries are the same, but its frames have no settled length.
const UNSETTLED_VERSION: u32 = 10;

/// When the journal is synced to disk. Every choice survives a killed coordinator; they differ on power loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FsyncPolicy {
    /// Before the effects are carried out.
    Always,
    /// At this interval.
    Interval(Duration),
    /// Never; the system writes it back.
    Never,
}

/// The first frame of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) version: u32,
    /// Random number of the journal. Numbers of jobs and workers are only valid within it.
    pub(crate) journal: u64,
    /// The engine's time 0, in microseconds since 1970.
    pub(crate) epoch_micros: u64,
    /// The checksum of the last frame of the file before, unless this is the first file or a snapshot replaces that one.
    /// Eight hexadecimal digits, so that headers with different values have the same length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) follows: Option<String>,
    /// The rules when this file was created: a replay needs the same ones.
    #[serde(flatten)]
    pub(crate) rules: EngineRules,
}

/// All rules that an engine decides by.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct EngineRules {
    pub(crate) settings: EngineSettings,
    /// The policy and its values, as written by `PolicyChoice::to_json`.
    pub(crate) scheduler: Value,
}

/// An error of reading or writing a journal.
#[derive(Debug, Error)]
pub enum JournalError {
    /// A system call failed.
    #[error("cannot {doing} {path}: {source}")]
    Io {
        /// The failed operation.
        doing: &'static str,
        /// Its path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A frame in the middle is damaged.
    #[error(
        "{path} is damaged at byte {offset}: {what}; restore the file, or see `nap journal check` and \
         `nap journal repair` for what can be kept without it"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The frame's offset.
        offset: u64,
        /// The defect.
        what: String,
    },
    /// The snapshot that a journal file depends on is missing.
    #[error(
        "{snapshot} is missing, but {journal} continues it; restore the file, or see `nap journal check` and \
         `nap journal repair` for what can be kept of {directory} without it"
    )]
    SnapshotMissing {
        /// The missing file.
        snapshot: PathBuf,
        /// The dependent file.
        journal: PathBuf,
        /// The directory of both.
        directory: PathBuf,
    },
    /// Another coordinator writes to the file.
    #[error("{path} is in use by another coordinator{holder}; end that one first")]
    InUse {
        /// The file.
        path: PathBuf,
        /// The other process in parentheses, if it is known.
        holder: String,
    },
    /// The file is of another version.
    #[error(
        "{path} has version {found}, but this program reads versions {UNSETTLED_VERSION} to {JOURNAL_VERSION}; \
         finish its jobs with the program that wrote it{}, then move the directory away", program_of(*found)
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
}

/// Returns the program that wrote journals of a version, in parentheses, if it is known.
fn program_of(version: u32) -> &'static str {
    match version {
        3 => " (napreduce 0.2)",
        9 => " (napreduce 0.3)",
        _ => "",
    }
}

impl JournalError {
    fn io(
        doing: &'static str,
        path: &std::path::Path,
    ) -> impl FnOnce(io::Error) -> JournalError + use<> {
        let path = path.to_owned();
        move |source| JournalError::Io {
            doing,
            path,
            source,
        }
    }
}
