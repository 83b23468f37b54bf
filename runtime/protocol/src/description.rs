//! The description of an attempt: all that a task process needs to know.
//!
//! Owns the plain data. Does not own the paths' layout (`output`) nor the carrying out (`task`).

use std::path::{Path, PathBuf};

use napreduce_engine::AttemptId;
use serde::{Deserialize, Serialize};

use crate::data_network::DataNetwork;
use crate::object_stores::PendingUpload;
use crate::splits::InputSplit;

/// The name of an output begins names of files, which have 255 bytes.
const NAME_BYTES_MAX: usize = 100;

/// What a task process is to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskDescription {
    pub attempt: AttemptId,
    /// Which definition of the program to build, and its encoded parameters.
    pub definition: String,
    pub parameters: Vec<u8>,
    /// Memory it may use, in bytes.
    pub memory: u64,
    pub work: Work,
    /// Where its part file goes once it may commit; `None` for a map whose output is a segment.
    #[serde(with = "crate::path_bytes::optional")]
    pub promote_to: Option<PathBuf>,
    /// With what the names of the objects begin in which checkpoints are; `None` where all who need them see
    /// the directories that they are in.
    #[serde(with = "crate::path_bytes::optional")]
    pub stored_checkpoints: Option<PathBuf>,
    /// Whether its part file is on the disk, not only in the page cache, before it asks for the commit.
    pub sync_part: bool,
}

/// The call to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Work {
    Map(MapTask),
    Reduce(ReduceWork),
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
    /// Memory that the worker keeps for the segment. `output` becomes a link to it if all of it fits.
    pub memory_file: Option<MemoryFile>,
    /// An empty directory for this attempt alone; what is in it is removed when the attempt has ended.
    #[serde(with = "crate::path_bytes")]
    pub scratch: PathBuf,
    /// Where this attempt's checkpoint goes, if it makes one: a directory beside those of other attempts, on
    /// storage that every worker sees. Made when it is needed.
    #[serde(with = "crate::path_bytes")]
    pub checkpoint: PathBuf,
    /// The directory of the checkpoint to start from, of an earlier attempt of the same task.
    #[serde(with = "crate::path_bytes::optional")]
    pub restore: Option<PathBuf>,
    /// Whether what is saved is on the disk, not only in the page cache, before it counts.
    pub durable: bool,
}

/// Memory that has a place in the file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryFile {
    /// An empty file that is there as long as the worker keeps it.
    #[serde(with = "crate::path_bytes")]
    pub path: PathBuf,
    /// How long it may become.
    pub bytes: u64,
}

/// What one reduce attempt does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReduceTask {
    /// The partition to merge, from 0.
    pub partition: u32,
    /// The sealed segment file of each map task, in task order, with the attempt that wrote it.
    #[serde(with = "crate::path_bytes::inputs")]
    pub inputs: Vec<(AttemptId, PathBuf)>,
    /// Files in which a worker has put small ones of these segments together; some, or none.
    #[serde(with = "crate::path_bytes::list")]
    pub consolidated: Vec<PathBuf>,
    /// Whether `inputs` hold only what is still needed after the checkpoint in `restore`: paths may lead
    /// nowhere, and files may begin in the middle of the partition. Then the task cannot start from scratch
    /// with them.
    pub inputs_are_partial: bool,
    /// Whether runs written by intermediate merges are to be compressed.
    pub compress: bool,
    /// The part file to write. Its directory exists.
    #[serde(with = "crate::path_bytes")]
    pub output: PathBuf,
    /// An empty directory for this attempt alone; what is in it is removed when the attempt has ended.
    #[serde(with = "crate::path_bytes")]
    pub scratch: PathBuf,
    /// Where this attempt's checkpoint goes, if it makes one: a directory beside those of other attempts, on
    /// storage that every worker sees. Made when it is needed.
    #[serde(with = "crate::path_bytes")]
    pub checkpoint: PathBuf,
    /// The directory of the checkpoint to start from, of an earlier attempt of the same task.
    #[serde(with = "crate::path_bytes::optional")]
    pub restore: Option<PathBuf>,
    /// Whether what is saved is on the disk, not only in the page cache, before it counts.
    pub durable: bool,
}

/// A reduce, and where the outputs of the maps are that it reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReduceWork {
    /// The task process fills in `inputs` once there is one of each map task.
    pub task: ReduceTask,
    /// How many map tasks there are.
    pub maps: u32,
    /// The outputs that are there already; others follow as `MoreInputs`.
    pub inputs: Vec<MapInput>,
    /// How to fetch those that are elsewhere; `None` where all of them are local.
    pub network: Option<DataNetwork>,
}

/// The output of one map attempt, and where a reduce finds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapInput {
    pub attempt: AttemptId,
    pub place: Place,
}

/// Where a sealed segment is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// A file that this host can read: it is mapped where it is, without a copy.
    Local(#[serde(with = "crate::path_bytes")] PathBuf),
    /// The data server of the worker that holds it, `HOST:PORT`.
    Remote(String),
}

/// A written part file, and the named ones that belong to it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PartOutput {
    /// Records in it.
    pub records: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// xxh3-64 of its bytes.
    pub digest: u64,
    /// What the task wrote to outputs with a name, in the order of the names.
    #[serde(default)]
    pub named: Vec<NamedPart>,
    /// Where the output is in a store: the upload that waits to become the part.
    #[serde(default)]
    pub upload: Option<PendingUpload>,
}

/// A part of an output with a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedPart {
    /// The output's name, with which the file's begins.
    pub name: String,
    pub records: u64,
    pub bytes: u64,
    /// xxh3-64 of its bytes.
    pub digest: u64,
    /// As that of a part.
    #[serde(default)]
    pub upload: Option<PendingUpload>,
}

impl PartOutput {
    /// Whether its names are such as files can be called by, each there once: what a program says
    /// may be anything.
    pub fn has_sound_names(&self) -> bool {
        let ascending = self.named.is_sorted_by(|one, other| one.name < other.name);
        ascending && self.named.iter().all(|part| NamedPart::is_name(&part.name))
    }
}

impl NamedPart {
    /// Whether an output can be called so: letters, digits, `-` and `_` behind a letter, and not `part`.
    pub fn is_name(name: &str) -> bool {
        let mut letters = name.bytes();
        let is_first = letters.next().is_some_and(|first| first.is_ascii_alphabetic());
        let others = letters.all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, b'-' | b'_'));
        is_first && others && name.len() <= NAME_BYTES_MAX && name != "part"
    }

    /// Where the part of the output `name` lies until it is committed: beside the part file of its task.
    pub fn beside(part: &Path, name: &str) -> PathBuf {
        let mut path = part.as_os_str().to_owned();
        path.push(".");
        path.push(name);
        PathBuf::from(path)
    }

    /// Where the part of the output `name` lies in an output, beside this part file:
    /// `errors-r-00000` beside `part-r-00000`.
    pub fn in_output(part: &Path, name: &str) -> PathBuf {
        let own = part.file_name().unwrap_or_default().to_string_lossy();
        part.with_file_name(format!("{name}{}", own.strip_prefix("part").unwrap_or(&own)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(names: &[&str]) -> PartOutput {
        let named =
            |name: &&str| NamedPart { name: name.to_string(), records: 0, bytes: 0, digest: 0, upload: None };
        PartOutput { named: names.iter().map(named).collect(), ..PartOutput::default() }
    }

    #[test]
    fn names_are_plain_different_and_in_order() {
        for sound in [&[][..], &["errors"], &["a", "b-1", "b_2"], &["parts"]] {
            assert!(part(sound).has_sound_names(), "{sound:?}");
        }
        let long = "a".repeat(NAME_BYTES_MAX + 1);
        for unsound in [
            &["part"][..],
            &[""],
            &["a", "a"],
            &["b", "a"],
            &["../a"],
            &["a/b"],
            &["a.b"],
            &["1"],
            &["_a"],
            &["é"],
            &[&long],
        ] {
            assert!(!part(unsound).has_sound_names(), "{unsound:?}");
        }
    }

    #[test]
    fn a_named_part_lies_beside_the_part() {
        assert_eq!(
            NamedPart::beside(Path::new("w/part-r-00001.tsv"), "errors"),
            Path::new("w/part-r-00001.tsv.errors")
        );
        assert_eq!(
            NamedPart::in_output(Path::new("s3://b/w/part-r-00001.tsv"), "errors"),
            Path::new("s3://b/w/errors-r-00001.tsv")
        );
    }
}
