//! What a caller chooses once per map task: memory, paths, partitioning and the shape of the segment.
//!
//! Owns the plain settings and their defaults. Does not own how memory is divided (`budget`).

use std::path::PathBuf;

use crate::collect::SavedCollection;
use crate::partition::Partitioning;
use crate::record::RecordEncoding;
use crate::segment::BlockCompression;

/// Settings of one map task's collector.
pub struct CollectorSettings {
    /// Bytes of memory for everything the collector holds. As little as 1 MiB works, slowly; less counts as 1
    /// MiB.
    pub memory: usize,
    /// An existing directory for sorted runs, this task's alone, best on the file system of `output`. Emptied
    /// of them at the end.
    pub scratch: PathBuf,
    /// The sealed segment file; its directory exists. Written under a temporary name beside it, then renamed.
    pub output: PathBuf,
    /// Memory for the segment that somebody keeps: a file to write it to instead, and how many bytes that may
    /// have. `output` is a link to it then. What does not fit, and what is to be durable, goes to the disk.
    pub memory_file: Option<(PathBuf, u64)>,
    /// The attempt's id, for the segment's header and for errors. At most 4096 bytes.
    pub label: String,
    /// The layout of records.
    pub encoding: RecordEncoding,
    /// Whether runs and the segment are compressed.
    pub compression: BlockCompression,
    /// How keys are shared out.
    pub partitioning: Partitioning,
    /// The most runs merged at once; less than 2 counts as 2.
    pub fan_in: usize,
    /// Whether the sealed file is on the disk, not only in the page cache, when `finish` returns.
    pub durable: bool,
    /// What an earlier attempt collected, and the directory that the names in it are relative to. These files
    /// are read where they are, and stay.
    pub resume: Option<(SavedCollection, PathBuf)>,
}

impl CollectorSettings {
    /// Settings with the usual choices: variable records, no compression, one partition, fan-in 64, on disk,
    /// not durable, nothing to resume.
    pub fn new(
        memory: usize,
        scratch: impl Into<PathBuf>,
        output: impl Into<PathBuf>,
        label: impl Into<String>,
    ) -> CollectorSettings {
        CollectorSettings {
            memory,
            scratch: scratch.into(),
            output: output.into(),
            memory_file: None,
            label: label.into(),
            encoding: RecordEncoding::Variable,
            compression: BlockCompression::None,
            partitioning: Partitioning::Single,
            fan_in: 64,
            durable: false,
            resume: None,
        }
    }
}
