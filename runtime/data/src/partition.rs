//! From an encoded key to the partition that owns it.
//!
//! Owns hash, range and custom partitioning over the grouping prefix, so that a group never straddles two
//! reduce tasks. Does not own the choice of cuts: sampling is the framework's.

use xxhash_rust::xxh3::xxh3_64;

use crate::key::head;

/// Length in bytes of the prefix of an encoded key that defines its group. Must not exceed the key's length.
pub type Grouping = fn(&[u8]) -> usize;

/// A caller's own choice of partition for an encoded key.
pub type Choose = Box<dyn Fn(&[u8]) -> u32 + Send>;

/// How keys are shared out among the reduce tasks.
pub enum Partitioning {
    /// One partition, 0.
    Single,
    /// xxh3 of the grouping prefix (the whole key without one), multiplied into `0..partitions`. The same on
    /// every machine and in every version.
    Hash {
        /// How many partitions; at least 1.
        partitions: u32,
        /// The prefix that is hashed.
        grouping: Option<Grouping>,
    },
    /// Partition i holds the keys from cut i-1 (included: a key equal to a cut goes right) to cut i
    /// (excluded).
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

/// A `Partitioning` made ready for one look-up per record.
pub(crate) enum Partitioner {
    Single,
    Hash { partitions: u32, grouping: Option<Grouping> },
    Range(Cuts),
    Custom { partitions: u32, choose: Choose },
}

/// Cuts with the first 16 bytes of each cached, so that most look-ups compare integers only.
pub(crate) struct Cuts {
    heads: Vec<u128>,
    cuts: Vec<Vec<u8>>,
    grouping: Option<Grouping>,
}

/// The most cuts that are counted rather than searched.
const COUNTED_MAX: usize = 24;

/// Why a partitioning cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PartitioningError {
    /// `partitions` is 0.
    #[error("a partitioning needs at least 1 partition")]
    NoPartition,
    /// The cuts of a range partitioning are not in order.
    #[error("cut {index} of the range partitioning is below the cut before it; sort the cuts")]
    Unordered {
        /// The first cut that is out of order, from 0.
        index: usize,
    },
}

impl Partitioner {
    pub(crate) fn new(partitioning: Partitioning) -> Result<Partitioner, PartitioningError> {
        match partitioning {
            Partitioning::Hash { partitions: 0, .. } | Partitioning::Custom { partitions: 0, .. } => {
                Err(PartitioningError::NoPartition)
            }
            Partitioning::Single | Partitioning::Hash { partitions: 1, .. } => Ok(Partitioner::Single),
            Partitioning::Hash { partitions, grouping } => Ok(Partitioner::Hash { partitions, grouping }),
            Partitioning::Custom { partitions, choose } => Ok(Partitioner::Custom { partitions, choose }),
            Partitioning::Range { cuts, grouping } => Cuts::new(cuts, grouping).map(Partitioner::Range),
        }
    }

    pub(crate) fn partitions(&self) -> u32 {
        match self {
            Partitioner::Single => 1,
            Partitioner::Hash { partitions, .. } | Partitioner::Custom { partitions, .. } => *partitions,
            Partitioner::Range(cuts) => cuts.cuts.len() as u32 + 1,
        }
    }

    /// The partition of a key, whose head is at hand. Only a custom choice can lie outside `0..partitions()`;
    /// the caller checks.
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
            Partitioner::Hash { partitions, grouping } => {
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
        Ok(Cuts { heads, cuts, grouping })
    }

    #[inline(always)]
    fn partition(&self, key: &[u8], head: u128) -> u32 {
        // Counting all costs less than a search with its mispredicted branches, as long as there are few.
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

    /// Cuts with the same first 16 bytes are told apart by the whole key.
    #[cold]
    #[inline(never)]
    fn partition_of_tie(&self, key: &[u8], head: u128, below: usize) -> u32 {
        let ties = self.heads[below..].iter().take_while(|&&cut| cut == head).count();
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
