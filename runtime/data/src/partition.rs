//! Partitioning: maps an encoded key to a partition, by hash, range or a custom function. Only the grouping
//! prefix counts, so that a group never straddles two reduce tasks.

use xxhash_rust::xxh3::xxh3_64;

use crate::key::head;

/// Returns the length in bytes of the grouping prefix of an encoded key, at most the key's length.
pub type Grouping = fn(&[u8]) -> usize;

/// A custom partition function over encoded keys.
pub type Choose = Box<dyn Fn(&[u8]) -> u32 + Send>;

/// How keys are assigned to reduce tasks.
pub enum Partitioning {
    /// All keys go to partition 0.
    Single,
    /// xxh3 of the grouping prefix (default: the whole key), scaled to `0..partitions`. The result is the same
    /// on every machine and in every version.
    Hash {
        /// Number of partitions; at least 1.
        partitions: u32,
        /// The prefix to hash.
        grouping: Option<Grouping>,
    },
    /// Partition i holds the keys from cut i-1 (inclusive) to cut i (exclusive).
    Range {
        /// Encoded keys in ascending order; there is one partition more than cuts.
        cuts: Vec<Vec<u8>>,
        /// The prefix of keys and cuts to compare.
        grouping: Option<Grouping>,
    },
    /// A custom function; a result outside `0..partitions` is an error.
    Custom {
        /// Number of partitions; at least 1.
        partitions: u32,
        /// Maps an encoded key to a partition.
        choose: Choose,
    },
}

/// A validated `Partitioning`, prepared for one lookup per record.
pub(crate) enum Partitioner {
    Single,
    Hash {
        partitions: u32,
        grouping: Option<Grouping>,
    },
    Range(Cuts),
    Custom {
        partitions: u32,
        choose: Choose,
    },
}

/// Range cuts with their cached heads, so that most lookups compare integers only.
pub(crate) struct Cuts {
    heads: Vec<u128>,
    cuts: Vec<Vec<u8>>,
    grouping: Option<Grouping>,
}

/// Up to this many cuts are counted; more are searched.
const COUNTED_MAX: usize = 24;

/// Why a partitioning is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PartitioningError {
    /// `partitions` is 0.
    #[error("a partitioning needs at least 1 partition")]
    NoPartition,
    /// The cuts of a range partitioning are not sorted.
    #[error("cut {index} of the range partitioning is below the cut before it; sort the cuts")]
    Unordered {
        /// The first cut below its predecessor, from 0.
        index: usize,
    },
}

impl Partitioner {
    pub(crate) fn new(partitioning: Partitioning) -> Result<Partitioner, PartitioningError> {
        match partitioning {
            Partitioning::Hash { partitions: 0, .. }
            | Partitioning::Custom { partitions: 0, .. } => Err(PartitioningError::NoPartition),
            Partitioning::Single | Partitioning::Hash { partitions: 1, .. } => {
                Ok(Partitioner::Single)
            }
            Partitioning::Hash {
                partitions,
                grouping,
            } => Ok(Partitioner::Hash {
                partitions,
                grouping,
            }),
            Partitioning::Custom { partitions, choose } => {
                Ok(Partitioner::Custom { partitions, choose })
            }
            Partitioning::Range { cuts, grouping } => {
                Cuts::new(cuts, grouping).map(Partitioner::Range)
            }
        }
    }

    pub(crate) fn partitions(&self) -> u32 {
        match self {
            Partitioner::Single => 1,
            Partitioner::Hash { partitions, .. } | Partitioner::Custom { partitions, .. } => {
                *partitions
            }
            Partitioner::Range(cuts) => cuts.cuts.len() as u32 + 1,
        }
    }

    /// Returns the partition of a key with this head. A custom function can return a partition outside
    /// `0..partitions()`; the caller checks it.
    #[inline(always)]
    pub(crate) fn partition(&self, key: &[u8], head: u128) -> u32 {
        match self {
            Partitioner::Single => 0,
            Partitioner::Range(cuts) if cuts.grouping.is_none() => cuts.partition(key, head),
            _ => self.partition_by_prefix(key),
        }
    }

    #[inline(never)]
    fn partition_by_prefix(&self, key: &[u8]) -> u32 {
        match self {
            Partitioner::Single => 0,
            Partitioner::Hash {
                partitions,
                grouping,
            } => {
                let hash = xxh3_64(prefix(key, *grouping));
                ((u128::from(hash) * u128::from(*partitions)) >> 64) as u32
            }
            Partitioner::Range(cuts) => {
                let prefix = prefix(key, cuts.grouping);
                cuts.partition(prefix, head(prefix))
            }
            Partitioner::Custom { choose, .. } => choose(key),
        }
    }
}

impl Cuts {
    fn new(mut cuts: Vec<Vec<u8>>, grouping: Option<Grouping>) -> Result<Cuts, PartitioningError> {
        for cut in &mut cuts {
            let len = prefix(cut, grouping).len();
            cut.truncate(len);
        }
        if let Some(index) = cuts.windows(2).position(|pair| pair[0] > pair[1]) {
            return Err(PartitioningError::Unordered { index: index + 1 });
        }
        let heads = cuts.iter().map(|cut| head(cut)).collect();
        Ok(Cuts {
            heads,
            cuts,
            grouping,
        })
    }

    #[inline(always)]
    fn partition(&self, key: &[u8], head: u128) -> u32 {
        // Counting all cuts beats a binary search with mispredicted branches while there are few.
        let below = if self.heads.len() <= COUNTED_MAX {
            self.heads.iter().map(|&cut| usize::from(cut < head)).sum()
        } else {
            self.heads.partition_point(|&cut| cut < head)
        };
        match self.heads.get(below) {
            Some(&cut) if cut == head => self.partition_of_tie(key, head, below),
            _ => below as u32,
        }
    }

    /// Compares whole keys if several cuts share the same head.
    #[cold]
    #[inline(never)]
    fn partition_of_tie(&self, key: &[u8], head: u128, below: usize) -> u32 {
        let ties = self.heads[below..]
            .iter()
            .take_while(|&&cut| cut == head)
            .count();
        let left = self.cuts[below..below + ties].partition_point(|cut| cut.as_slice() <= key);
        (below + left) as u32
    }
}

#[inline]
pub(crate) fn prefix(key: &[u8], grouping: Option<Grouping>) -> &[u8] {
    match grouping {
        None => key,
        Some(len) => &key[..len(key).min(key.len())],
    }
}
