//! The description of an attempt: everything that a task process needs to know.

use std::path::{Path, PathBuf};

use napreduce_engine::AttemptId;
use serde::{Deserialize, Serialize};

use crate::data_network::DataNetwork;
use crate::object_stores::PendingUpload;
use crate::splits::InputSplit;

/// An output's name is a prefix of file names, which have at most 255 bytes.
const NAME_BYTES_MAX: usize = 100;

/// The work of a task process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskDescription {
    pub attempt: AttemptId,
    /// The program's definition to build, and its encoded parameters.
    pub definition: String,
    pub parameters: Vec<u8>,
    /// Memory limit in bytes.
    pub memory: u64,
    pub work: Work,
    /// The part file's final path; `None` for a map whose output is a segment.
    #[serde(with = "crate::path_bytes::optional")]
    pub promote_to: Option<PathBuf>,
    /// The object name prefix of checkpoints in a store; `None` if all workers share the checkpoint
    /// directories.
    #[serde(with = "crate::path_bytes::optional")]
    pub stored_checkpoints: Option<PathBuf>,
    /// Whether to sync the part file before the commit request.
    pub sync_part: bool,
}

/// The call to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Work {
    Map(MapTask),
    Reduce(ReduceWork),
}

/// The work of a map attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapTask {
    /// The input.
    pub split: InputSplit,
    /// Partitions of the output; 0 for a map-only job.
    pub partitions: u32,
    /// Encoded cut keys of a range partitioner, ascending; empty for other partitioners.
    pub cuts: Vec<Vec<u8>>,
    /// Whether to compress blocks of map output.
    pub compress: bool,
    /// The segment to write, or the part file of a map-only job. Its directory exists.
    #[serde(with = "crate::path_bytes")]
    pub output: PathBuf,
    /// Memory reserved by the worker for the segment. `output` becomes a link to it if the segment fits.
    pub memory_file: Option<MemoryFile>,
    /// An empty private directory, removed after the attempt.
    #[serde(with = "crate::path_bytes")]
    pub scratch: PathBuf,
    /// The directory for this attempt's checkpoint, on storage shared by all workers; created when needed.
    #[serde(with = "crate::path_bytes")]
    pub checkpoint: PathBuf,
    /// The checkpoint directory of an earlier attempt to restore from.
    #[serde(with = "crate::path_bytes::optional")]
    pub restore: Option<PathBuf>,
    /// Whether saved data must be synced to disk before it counts.
    pub durable: bool,
}

/// A file in memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryFile {
    /// An empty file that exists as long as the worker keeps it.
    #[serde(with = "crate::path_bytes")]
    pub path: PathBuf,
    /// Its size limit.
    pub bytes: u64,
}

/// The work of a reduce attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReduceTask {
    /// The partition to merge, from 0.
    pub partition: u32,
    /// The segments of all map tasks, in task order, with the attempts that wrote them.
    #[serde(with = "crate::path_bytes::inputs")]
    pub inputs: Vec<(AttemptId, PathBuf)>,
    /// Files in which the worker has combined small segments; may be empty.
    #[serde(with = "crate::path_bytes::list")]
    pub consolidated: Vec<PathBuf>,
    /// Whether `inputs` contain only what is needed after the checkpoint in `restore`: paths may be missing,
    /// and files may begin inside the partition. Then the task cannot restart from scratch.
    pub inputs_are_partial: bool,
    /// Whether to compress runs of intermediate merges.
    pub compress: bool,
    /// The part file to write. Its directory exists.
    #[serde(with = "crate::path_bytes")]
    pub output: PathBuf,
    /// An empty private directory, removed after the attempt.
    #[serde(with = "crate::path_bytes")]
    pub scratch: PathBuf,
    /// The directory for this attempt's checkpoint, on storage shared by all workers; created when needed.
    #[serde(with = "crate::path_bytes")]
    pub checkpoint: PathBuf,
    /// The checkpoint directory of an earlier attempt to restore from.
    #[serde(with = "crate::path_bytes::optional")]
    pub restore: Option<PathBuf>,
    /// Whether saved data must be synced to disk before it counts.
    pub durable: bool,
}

/// A reduce and the locations of its map outputs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReduceWork {
    /// The task process fills in `inputs` once every map task has one.
    pub task: ReduceTask,
    /// The number of map tasks.
    pub maps: u32,
    /// Available outputs; more follow as `MoreInputs`.
    pub inputs: Vec<MapInput>,
    /// Access to remote outputs; `None` if all are local.
    pub network: Option<DataNetwork>,
}

/// The output of a map attempt and its location.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapInput {
    pub attempt: AttemptId,
    pub place: Place,
}

/// The location of a sealed segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// A file readable on this host, which is mapped in place.
    Local(#[serde(with = "crate::path_bytes")] PathBuf),
    /// The data server of its worker, `HOST:PORT`.
    Remote(String),
}

/// A written part file and its named outputs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PartOutput {
    /// Records in it.
    pub records: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// xxh3-64 of its bytes.
    pub digest: u64,
    /// Named outputs of the task, in the order of their names.
    #[serde(default)]
    pub named: Vec<NamedPart>,
    /// For output in a store: the upload that will become the part.
    #[serde(default)]
    pub upload: Option<PendingUpload>,
}

/// A part of a named output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedPart {
    /// The output's name, a prefix of the file's.
    pub name: String,
    pub records: u64,
    pub bytes: u64,
    /// xxh3-64 of its bytes.
    pub digest: u64,
    /// As in `PartOutput`.
    #[serde(default)]
    pub upload: Option<PendingUpload>,
}

impl PartOutput {
    /// Whether the names are valid and unique: they come from the program unchecked.
    pub fn has_sound_names(&self) -> bool {
        let ascending = self.named.is_sorted_by(|one, other| one.name < other.name);
        ascending && self.named.iter().all(|part| NamedPart::is_name(&part.name))
    }
}

impl NamedPart {
    /// Whether an output may have this name: a letter, then letters, digits, `-` and `_`; not `part`.
    pub fn is_name(name: &str) -> bool {
        let mut letters = name.bytes();
        let is_first = letters
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic());
        let others =
            letters.all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, b'-' | b'_'));
        is_first && others && name.len() <= NAME_BYTES_MAX && name != "part"
    }

    /// The uncommitted part of the output `name`, in the directory of the task's part file.
    pub fn path_next_to(part: &Path, name: &str) -> PathBuf {
        let mut path = part.as_os_str().to_owned();
        path.push(".");
        path.push(name);
        PathBuf::from(path)
    }

    /// The committed part of the output `name`: `errors-r-00000` in the directory of `part-r-00000`.
    pub fn in_output(part: &Path, name: &str) -> PathBuf {
        let own = part.file_name().unwrap_or_default().to_string_lossy();
        part.with_file_name(format!(
            "{name}{}",
            own.strip_prefix("part").unwrap_or(&own)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(names: &[&str]) -> PartOutput {
        let named = |name: &&str| NamedPart {
            name: name.to_string(),
            records: 0,
            bytes: 0,
            digest: 0,
            upload: None,
        };
        PartOutput {
            named: names.iter().map(named).collect(),
            ..PartOutput::default()
        }
    }

    #[test]
    fn output_names_must_be_plain_distinct_and_sorted() {
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
    fn named_part_is_next_to_its_part() {
        assert_eq!(
            NamedPart::path_next_to(Path::new("w/part-r-00001.tsv"), "errors"),
            Path::new("w/part-r-00001.tsv.errors")
        );
        assert_eq!(
            NamedPart::in_output(Path::new("s3://b/w/part-r-00001.tsv"), "errors"),
            Path::new("s3://b/w/errors-r-00001.tsv")
        );
    }
}
