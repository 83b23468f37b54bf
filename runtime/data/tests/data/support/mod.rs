//! Helpers of the data plane's tests: a folder, collecting and reading in one call, and the naive results to
//! compare with.
#![allow(dead_code, clippy::unwrap_used)] // each test file uses its own part; a panic here fails a test

use std::path::{Path, PathBuf};

use napreduce_data::{
    BlockCompression, CollectStatistics, Collector, CollectorSettings, Combiner, Partitioning,
    RecordEncoding, ReduceInput, ReduceSettings, SavePlace, Segment, SegmentAssembly, SegmentError,
    SegmentIndex,
};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::TempDir;

pub const MIB: usize = 1 << 20;

pub type Pair = (Vec<u8>, Vec<u8>);

/// How a test collects.
#[derive(Clone, Copy)]
pub struct Shape {
    pub memory: usize,
    pub encoding: RecordEncoding,
    pub compression: BlockCompression,
    pub partitions: u32,
    pub fan_in: usize,
}

impl Default for Shape {
    fn default() -> Shape {
        Shape {
            memory: MIB,
            encoding: RecordEncoding::Variable,
            compression: BlockCompression::None,
            partitions: 1,
            fan_in: 64,
        }
    }
}

impl Shape {
    pub fn memory(self, memory: usize) -> Shape {
        Shape { memory, ..self }
    }

    pub fn fixed(self, key: u32, value: u32) -> Shape {
        Shape {
            encoding: RecordEncoding::Fixed { key, value },
            ..self
        }
    }

    pub fn lz4(self) -> Shape {
        Shape {
            compression: BlockCompression::Lz4,
            ..self
        }
    }

    pub fn partitions(self, partitions: u32) -> Shape {
        Shape { partitions, ..self }
    }

    pub fn fan_in(self, fan_in: usize) -> Shape {
        Shape { fan_in, ..self }
    }
}

/// A temporary folder, removed at the end of the test.
pub struct Place {
    folder: TempDir,
}

impl Place {
    pub fn new() -> Place {
        Place {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn names(&self) -> Vec<String> {
        self.names_in("")
    }

    pub fn names_in(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(folder)).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Returns a folder in `checkpoints` for the files of a checkpoint.
    pub fn save_place(&self, folder: &str) -> SavePlace {
        let base = self.path("checkpoints");
        std::fs::create_dir_all(base.join(folder)).unwrap();
        SavePlace {
            base,
            folder: folder.into(),
            durable: false,
        }
    }

    /// Lists the files two levels below a folder.
    pub fn files_below(&self, name: &str) -> Vec<String> {
        let children = |path: &Path| -> Vec<PathBuf> {
            std::fs::read_dir(path).map_or(Vec::new(), |all| {
                all.map(|entry| entry.unwrap().path()).collect()
            })
        };
        let top = self.path(name);
        let files = children(&top)
            .into_iter()
            .flat_map(|folder| children(&folder));
        let mut files: Vec<String> = files
            .map(|path| {
                path.strip_prefix(&top)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned()
            })
            .collect();
        files.sort();
        files
    }

    pub fn is_empty(&self, folder: &str) -> bool {
        self.names_in(folder).is_empty()
    }

    pub fn settings(&self, name: &str, shape: Shape) -> CollectorSettings {
        CollectorSettings {
            encoding: shape.encoding,
            compression: shape.compression,
            partitioning: Partitioning::Hash {
                partitions: shape.partitions,
                grouping: None,
            },
            fan_in: shape.fan_in,
            ..CollectorSettings::new(
                shape.memory,
                self.folder.path(),
                self.path(name),
                format!("attempt of {name}"),
            )
        }
    }

    /// Collects pairs into the segment `name`.
    pub fn collect<'a>(
        &self,
        name: &str,
        shape: Shape,
        pairs: impl IntoIterator<Item = &'a Pair>,
    ) -> CollectStatistics {
        let mut collector: Collector<()> = Collector::plain(self.settings(name, shape)).unwrap();
        for (key, value) in pairs {
            collector.emit_bytes(key, value);
        }
        collector.check().unwrap();
        collector.finish().unwrap().1
    }

    /// Collects keys with the value 1 through an adding combiner.
    pub fn count<'a>(
        &self,
        name: &str,
        shape: Shape,
        keys: impl IntoIterator<Item = &'a Vec<u8>>,
    ) -> CollectStatistics {
        let mut collector = Collector::combining(self.settings(name, shape), Sum).unwrap();
        for key in keys {
            collector.emit_value(key, 1, 0);
        }
        collector.finish().unwrap().1
    }

    pub fn reduce_settings(&self, names: &[&str], partition: u32) -> ReduceSettings {
        ReduceSettings {
            consolidated: Vec::new(),
            segments: names.iter().map(|name| self.path(name)).collect(),
            partition,
            memory: MIB,
            scratch: self.folder.path().to_owned(),
            label: "attempt of a reduce".into(),
            fan_in: 64,
            read_max: 0,
            grouping: None,
            resume: None,
        }
    }

    /// Returns all groups of partition 0 with their values.
    pub fn groups(&self, names: &[&str]) -> Vec<(Vec<u8>, Vec<Vec<u8>>)> {
        groups(&mut ReduceInput::open(self.reduce_settings(names, 0)).unwrap())
    }
}

/// Returns the remaining groups of a reduce input.
pub fn groups(input: &mut ReduceInput) -> Vec<(Vec<u8>, Vec<Vec<u8>>)> {
    let mut groups = Vec::new();
    while input.next_group().unwrap() {
        let mut values = Vec::new();
        while let Some((_, value)) = input.next_value().unwrap() {
            values.push(value.to_vec());
        }
        groups.push((input.group_key().to_vec(), values));
    }
    groups
}

/// Writes a file with one partition of a segment from a block on, as a fetch does.
pub fn excerpt(segment: &Path, to: &Path, partition: u32, from_block: u64) {
    let index = SegmentIndex::read(&std::fs::File::open(segment).unwrap(), segment).unwrap();
    let extent = index.extent(partition, from_block).unwrap();
    let blocks = extent.range();
    let mut assembly = SegmentAssembly::create(to, extent).unwrap();
    assembly
        .accept(&std::fs::read(segment).unwrap()[blocks.start as usize..blocks.end as usize])
        .unwrap();
    assembly.seal().unwrap();
}

/// Reads every record of every partition.
pub fn read(path: &Path) -> Result<Vec<Vec<Pair>>, SegmentError> {
    let segment = Segment::open(path)?;
    let mut partitions = Vec::new();
    for partition in 0..segment.partitions() {
        let mut pairs = Vec::new();
        let mut cursor = segment.cursor(partition)?;
        while cursor.advance()? {
            pairs.push((cursor.key().to_vec(), cursor.value().to_vec()));
        }
        assert_eq!(pairs.len() as u64, segment.partition(partition)?.records);
        partitions.push(pairs);
    }
    Ok(partitions)
}

/// Computes the expected segment: each partition stably sorted by key.
pub fn sorted(pairs: &[Pair], partitions: u32) -> Vec<Vec<Pair>> {
    let mut sorted = vec![Vec::new(); partitions as usize];
    for pair in pairs {
        sorted[hash_partition(&pair.0, partitions)].push(pair.clone());
    }
    for partition in &mut sorted {
        partition.sort_by(|a, b| a.0.cmp(&b.0));
    }
    sorted
}

/// Reimplements the documented hash partitioning.
pub fn hash_partition(key: &[u8], partitions: u32) -> usize {
    ((u128::from(xxhash_rust::xxh3::xxh3_64(key)) * u128::from(partitions)) >> 64) as usize
}

pub struct Sum;

impl Combiner for Sum {
    type Value = u64;

    fn fold(&self, into: &mut u64, more: u64) {
        *into += more;
    }

    fn encode(&self, value: &u64, into: &mut Vec<u8>) {
        into.extend_from_slice(&value.to_be_bytes());
    }

    fn decode(&self, bytes: &[u8]) -> Result<u64, String> {
        let bytes: [u8; 8] = bytes
            .try_into()
            .map_err(|_| format!("{} bytes; expected 8", bytes.len()))?;
        Ok(u64::from_be_bytes(bytes))
    }
}

/// Serializes and deserializes a description.
pub fn in_words<T: Serialize + DeserializeOwned>(saved: &T) -> T {
    serde_json::from_slice(&serde_json::to_vec(saved).unwrap()).unwrap()
}

/// Creates a generator and prints its seed.
pub fn random(seed: u64) -> Pcg64 {
    println!("seed {seed}");
    Pcg64::seed_from_u64(seed)
}

pub fn bytes(random: &mut Pcg64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    random.fill(bytes.as_mut_slice());
    bytes
}

/// Pairs each key with its position, so that a lost, duplicated or reordered record shows.
pub fn numbered(keys: Vec<Vec<u8>>) -> Vec<Pair> {
    keys.into_iter()
        .enumerate()
        .map(|(number, key)| (key, (number as u64).to_be_bytes().to_vec()))
        .collect()
}
