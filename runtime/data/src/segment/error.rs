//! What can be wrong with a segment file, told so that the reader knows which file and what to do.
//!
//! Owns the error of reading. Errors of writing belong to whoever writes: `CollectError` and `ReduceError`.

use std::io;
use std::path::{Path, PathBuf};

use super::format::Header;

/// A segment could not be read.
#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    /// The file could not be opened or mapped.
    #[error("cannot open segment {}: {source}; run again the map task that wrote it", path.display())]
    Open { path: PathBuf, source: io::Error },
    /// The bytes are not what was sealed: cut, flipped, or another kind of file.
    #[error("segment {} of {label} is damaged: {what}; run again the map task that wrote it", path.display())]
    Damaged {
        path: PathBuf,
        /// The attempt that wrote it, as its header says; `an unknown attempt` when the header is unreadable.
        label: String,
        /// The part that does not fit, with its place.
        what: String,
    },
    /// The caller asked for a partition that the segment does not have.
    #[error("segment {} has partitions 0..{partitions}, not {partition}", path.display())]
    NoPartition { path: PathBuf, partition: u32, partitions: u32 },
    /// The file was made for the reduce of another partition.
    #[error("segment {} holds partition {held} only, not {partition}", path.display())]
    OtherPartition { path: PathBuf, partition: u32, held: u32 },
    /// The caller asked for a block after the last one.
    #[error("partition {partition} of segment {} has {blocks} blocks, none from block {block} on", path.display())]
    NoBlock {
        path: PathBuf,
        partition: u32,
        /// The block asked for, from 0.
        block: u64,
        blocks: u64,
    },
    /// The caller asked for a record after the last one, or before the first one of a file that starts later.
    #[error("partition {partition} of segment {} has records {first}..{end}, not a record {ordinal}", path.display())]
    NoRecord {
        path: PathBuf,
        partition: u32,
        /// The record asked for, from 0.
        ordinal: u64,
        /// The first one there is.
        first: u64,
        /// The one after the last.
        end: u64,
    },
}

/// The error for a file that is not a whole segment; `start` is how it begins.
pub(super) fn damaged(path: &Path, start: &[u8], what: String) -> SegmentError {
    let label = Header::decode(start).map_or("an unknown attempt".into(), |(header, _)| header.label);
    SegmentError::Damaged { path: path.to_owned(), label, what }
}
