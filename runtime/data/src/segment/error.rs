//! Why a segment file cannot be read or written.

use std::io;
use std::path::{Path, PathBuf};

use super::format::Header;

/// Why a segment could not be read.
#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    /// The file could not be opened or mapped.
    #[error("cannot open segment {}: {source}; rerun the map task that wrote it", path.display())]
    Open { path: PathBuf, source: io::Error },
    /// The file is not a complete, unchanged segment.
    #[error("segment {} of {label} is damaged: {what}; rerun the map task that wrote it", path.display())]
    Damaged {
        path: PathBuf,
        /// The attempt that wrote it, from the header; `an unknown attempt` if that is unreadable.
        label: String,
        /// The mismatch and its position.
        what: String,
    },
    /// The segment does not have this partition.
    #[error("segment {} has no partition {partition}; it has {partitions}, from 0", path.display())]
    NoPartition {
        path: PathBuf,
        partition: u32,
        partitions: u32,
    },
    /// The file holds only another partition.
    #[error("segment {} has only partition {held}, not {partition}", path.display())]
    OtherPartition {
        path: PathBuf,
        partition: u32,
        held: u32,
    },
    /// The partition does not have this block.
    #[error("segment {} has no block {block} of partition {partition}; it has {blocks}, from 0", path.display())]
    NoBlock {
        path: PathBuf,
        partition: u32,
        /// The requested block, from 0.
        block: u64,
        blocks: u64,
    },
    /// The file does not have this record: it is after the last one, or before the first one of an excerpt.
    #[error("segment {} has no record {ordinal} of partition {partition}; it has {first}..{end}", path.display())]
    NoRecord {
        path: PathBuf,
        partition: u32,
        /// The requested record, from 0.
        ordinal: u64,
        first: u64,
        end: u64,
    },
}

/// Returns the error for an invalid file that starts with `start`.
pub(super) fn damaged(path: &Path, start: &[u8], what: String) -> SegmentError {
    let label =
        Header::decode(start).map_or("an unknown attempt".into(), |(header, _)| header.label);
    SegmentError::Damaged {
        path: path.to_owned(),
        label,
        what,
    }
}

/// Why a file of the data plane could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} {}: {source}{}", path.display(), advice(source))]
pub struct WriteError {
    /// The failed operation: `create`, `write`, `sync` and so on.
    pub doing: &'static str,
    pub path: PathBuf,
    pub source: io::Error,
}

impl WriteError {
    pub(super) fn new(doing: &'static str, path: &Path, source: io::Error) -> WriteError {
        WriteError {
            doing,
            path: path.to_owned(),
            source,
        }
    }
}

fn advice(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free space on that file system or move the output directory to another one"
        }
        io::ErrorKind::NotFound => "; its directory must exist",
        io::ErrorKind::PermissionDenied => "; its directory must be writable",
        _ => "",
    }
}
