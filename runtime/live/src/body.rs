//! What a task process is asked to do and what it answers, as the framework sees it.
//!
//! Owns the traits that a program's job definitions implement and the descriptions of map and reduce tasks. Does not
//! own how a description reaches a task process (`protocol`) nor what the user's code sees of it (`napreduce`).

use std::fmt;
use std::path::{Path, PathBuf};

use napreduce_core::AttemptId;
use serde::{Deserialize, Serialize};

use crate::task::{TaskContext, TaskError};

/// The job definitions of one program, by name.
///
/// A task process calls it once, before its map or reduce call. The [crate's example](crate) is a whole program.
pub trait Definitions {
    /// Builds the job that `definition` names from its encoded parameters.
    ///
    /// An unknown name or parameters that cannot be decoded are the task's own fault.
    fn build(&self, definition: &str, parameters: &[u8]) -> Result<Box<dyn JobBody>, TaskError>;
}

/// A task as one object with a few coarse calls; the loops over records are monomorphised behind them. The
/// [crate's example](crate) implements it.
pub trait JobBody {
    /// Reads one split and writes a sealed segment file, or a part file when the job is map-only, to `task.output`.
    fn run_map(&self, task: &MapTask, context: &TaskContext) -> Result<MapResult, TaskError>;

    /// Merges one partition of all `task.inputs` and writes a part file to `task.output`.
    fn run_reduce(&self, task: &ReduceTask, context: &TaskContext) -> Result<ReduceResult, TaskError>;
}

/// What one map task reads: a byte range of a file or, of small files, several of them one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputSplit {
    /// At least one, in the order of the input.
    pub parts: Vec<Split>,
}

impl InputSplit {
    /// Bytes in all parts.
    pub fn length(&self) -> u64 {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.length))
    }
}

impl From<Split> for InputSplit {
    fn from(part: Split) -> InputSplit {
        InputSplit { parts: vec![part] }
    }
}

/// It names its first file, and how many more there are: `logs/0001 and 99 more files`.
impl fmt::Display for InputSplit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((first, more)) = self.parts.split_first() else { return formatter.write_str("no file") };
        first.path.display().fmt(formatter)?;
        match more.len() {
            0 => Ok(()),
            1 => formatter.write_str(" and 1 more file"),
            count => write!(formatter, " and {count} more files"),
        }
    }
}

/// A byte range of an input file, read by one map task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// The input file.
    #[serde(with = "crate::path_bytes")]
    pub path: PathBuf,
    /// Where the range starts, in bytes of the file as it is stored.
    pub offset: u64,
    /// Its length in bytes.
    pub length: u64,
    /// Length of the whole file in bytes, when the splits were planned. What is added to it later is not read.
    pub file_length: u64,
}

impl Split {
    /// The split that is a whole file of `file_length` bytes.
    pub fn whole(path: &Path, file_length: u64) -> Split {
        Split { path: path.to_owned(), offset: 0, length: file_length, file_length }
    }

    /// The first byte behind it.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }
}

/// What one map attempt does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapTask {
    /// What to read.
    pub split: InputSplit,
    /// Into how many partitions the output is divided; 0 for a map-only job.
    pub partitions: u32,
    /// The cut keys of a range partitioner, encoded, in ascending order; empty for any other partitioner.
    pub cuts: Vec<Vec<u8>>,
    /// Whether blocks of map output are to be compressed.
    pub compress: bool,
    /// The sealed segment file to write; the part file when the job is map-only. Its directory exists.
    #[serde(with = "crate::path_bytes")]
    pub output: PathBuf,
    /// An empty directory for this attempt alone; what is in it is removed when the attempt has ended.
    #[serde(with = "crate::path_bytes")]
    pub scratch: PathBuf,
    /// Where this attempt's checkpoint goes, if it makes one: a directory beside those of other attempts, on storage
    /// that every worker sees. Made when it is needed.
    #[serde(with = "crate::path_bytes")]
    pub checkpoint: PathBuf,
    /// The directory of the checkpoint to start from, of an earlier attempt of the same task.
    #[serde(with = "crate::path_bytes::optional")]
    pub restore: Option<PathBuf>,
    /// Whether what is saved is on the disk, not only in the page cache, before it counts.
    pub durable: bool,
}

/// What one reduce attempt does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReduceTask {
    /// The partition to merge, from 0.
    pub partition: u32,
    /// The sealed segment file of each map task, in task order, with the attempt that wrote it.
    #[serde(with = "crate::path_bytes::inputs")]
    pub inputs: Vec<(AttemptId, PathBuf)>,
    /// Whether `inputs` hold only what is still needed after the checkpoint in `restore`: paths may lead nowhere, and files
    /// may begin in the middle of the partition. Then the task cannot start from scratch with them.
    pub inputs_are_partial: bool,
    /// Whether runs written by intermediate merges are to be compressed.
    pub compress: bool,
    /// The part file to write. Its directory exists.
    #[serde(with = "crate::path_bytes")]
    pub output: PathBuf,
    /// An empty directory for this attempt alone; what is in it is removed when the attempt has ended.
    #[serde(with = "crate::path_bytes")]
    pub scratch: PathBuf,
    /// Where this attempt's checkpoint goes, if it makes one: a directory beside those of other attempts, on storage
    /// that every worker sees. Made when it is needed.
    #[serde(with = "crate::path_bytes")]
    pub checkpoint: PathBuf,
    /// The directory of the checkpoint to start from, of an earlier attempt of the same task.
    #[serde(with = "crate::path_bytes::optional")]
    pub restore: Option<PathBuf>,
    /// Whether what is saved is on the disk, not only in the page cache, before it counts.
    pub durable: bool,
}

/// A written part file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PartOutput {
    /// Records in it.
    pub records: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// xxh3-64 of its bytes.
    pub digest: u64,
}

/// What a map call answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MapResult {
    /// The split was read to its end.
    Done {
        /// The part file, when the job is map-only.
        part: Option<PartOutput>,
    },
    /// It was asked to, and saved what it has done; another attempt goes on from there.
    Checkpointed(SavedCheckpoint),
}

/// What a reduce call answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReduceResult {
    /// The partition was reduced to its end.
    Done {
        /// The part file.
        part: PartOutput,
    },
    /// It was asked to, and saved what it has done; another attempt goes on from there.
    Checkpointed(SavedCheckpoint),
}

/// A checkpoint that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedCheckpoint {
    /// Bytes of all files that were made for it; those of earlier checkpoints that it names are not among them.
    pub bytes: u64,
}
