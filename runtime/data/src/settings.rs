//! What a caller chooses once per task: partitioning, compression, memory and paths.
//!
//! Owns the plain settings and their defaults. Does not own how a partition is computed (`partition`) nor how memory is
//! divided (`budget`).

use std::path::PathBuf;

use crate::collect::SavedCollection;
use crate::record::RecordEncoding;

/// Length in bytes of the prefix of an encoded key that defines its group. Must not exceed the key's length.
pub type Grouping = fn(&[u8]) -> usize;

/// A caller's own choice of partition for an encoded key.
pub type Choose = Box<dyn Fn(&[u8]) -> u32 + Send>;

/// Whether blocks are compressed. A block that does not shrink below 0.9 is stored as it is either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// Blocks are stored as they are, and read without a copy.
    #[default]
    None,
    /// Each block is compressed with lz4; jumbo blocks are not, so that reading them needs no memory.
    Lz4,
}

/// How keys are shared out among the reduce tasks.
pub enum Partitioning {
    /// One partition, 0.
    Single,
    /// xxh3 of the grouping prefix (the whole key without one), multiplied into `0..partitions`. The same on every
    /// machine and in every version.
    Hash {
        /// How many partitions; at least 1.
        partitions: u32,
        /// The prefix that is hashed.
        grouping: Option<Grouping>,
    },
    /// Partition i holds the keys from cut i-1 (included: a key equal to a cut goes right) to cut i (excluded).
    Range {
        /// Encoded keys in ascending order; one partition more than there are cuts.
        cuts: Vec<Vec<u8>>,
        /// The prefix of the key, and of each cut, that is compared.
        grouping: Option<Grouping>,
    },
    /// The caller's own function; an answer outside `0..partitions` is an error that names it.
    Custom {
        /// How many partitions; at least 1.
        partitions: u32,
        /// From encoded key to partition.
        choose: Choose,
    },
}

/// Settings of one map task's collector.
pub struct CollectorSettings {
    /// Bytes of memory for everything the collector holds. As little as 1 MiB works, slowly; less counts as 1 MiB.
    pub memory: usize,
    /// An existing directory for sorted runs, this task's alone, best on the file system of `output`. Emptied of them at
    /// the end.
    pub scratch: PathBuf,
    /// The sealed segment file; its directory exists. Written under a temporary name beside it, then renamed.
    pub output: PathBuf,
    /// The attempt's id, for the segment's header and for errors. At most 4096 bytes.
    pub label: String,
    /// The layout of records.
    pub encoding: RecordEncoding,
    /// Whether runs and the segment are compressed.
    pub compression: Compression,
    /// How keys are shared out.
    pub partitioning: Partitioning,
    /// The most runs merged at once; less than 2 counts as 2.
    pub fan_in: usize,
    /// Whether the sealed file is on the disk, not only in the page cache, when `finish` returns.
    pub durable: bool,
    /// What an earlier attempt collected, and the directory that the names in it are relative to. These files are read
    /// where they are, and stay.
    pub resume: Option<(SavedCollection, PathBuf)>,
}

impl CollectorSettings {
    /// Settings with the usual choices: variable records, no compression, one partition, fan-in 64, not durable, nothing
    /// to resume.
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
            label: label.into(),
            encoding: RecordEncoding::Variable,
            compression: Compression::None,
            partitioning: Partitioning::Single,
            fan_in: 64,
            durable: false,
            resume: None,
        }
    }
}

/// Settings of one reduce task's input.
#[derive(Debug, Clone)]
pub struct ReduceSettings {
    /// One sealed segment per map task, in the order of the map tasks: it decides the order of equal keys.
    pub segments: Vec<PathBuf>,
    /// Which partition of each.
    pub partition: u32,
    /// Bytes of memory for everything the input holds. As little as 1 MiB works, slowly; less counts as 1 MiB.
    pub memory: usize,
    /// An existing directory for intermediate merges, this task's alone. Emptied of them
    /// when the input is dropped.
    pub scratch: PathBuf,
    /// The attempt's id, for the headers of intermediate merges and for errors. At most 4096 bytes.
    pub label: String,
    /// The most segments merged at once; less than 2 counts as 2.
    pub fan_in: usize,
    /// The prefix of a key that defines its group; the whole key without one.
    pub grouping: Option<Grouping>,
}
