//! Partitioning and grouping of keys, as chosen in the builder.

use std::marker::PhantomData;
use std::sync::Arc;

use napreduce_data::Partitioning;

use crate::codec::{GroupBy, Key, Scratch};

/// Chooses the partition, from 0, of an encoded group among a number of partitions. The flag is set if the group is a
/// whole key, whose last field ends with the bytes.
type Choose = dyn Fn(&[u8], bool, u32) -> u32 + Send + Sync;

/// The partitioning of a job.
pub(crate) enum PartitionChoice {
    /// By a hash of the grouping prefix that is equal on all machines.
    Hash,
    /// By cuts found by sampling, so that the concatenated part files are sorted.
    TotalOrder,
    /// By a user function of the group.
    Custom {
        choose: Arc<Choose>,
        /// Length of the group at the beginning of a key; `None` for the whole key.
        group_length: Option<fn(&[u8]) -> usize>,
    },
    /// By a function of keys that were grouped by a prefix later. It is refused: it could divide a group.
    BeforeGrouping,
}

impl PartitionChoice {
    /// Returns the choice by a user function of the group.
    pub(crate) fn custom<G: Key>(
        choose: impl Fn(G::Ref<'_>, u32) -> u32 + Send + Sync + 'static,
        grouping: &Grouping<G>,
    ) -> PartitionChoice {
        let choose = move |group: &[u8], is_last: bool, partitions: u32| {
            let scratch = Scratch::new();
            let mut rest = group;
            let group = G::decode(&mut rest, is_last, &scratch)
                .expect("a key that was just encoded decodes");
            choose(group, partitions)
        };
        PartitionChoice::Custom {
            choose: Arc::new(choose),
            group_length: grouping.prefix_length,
        }
    }

    /// Returns the choice for keys that are then grouped by a prefix.
    pub(crate) fn before_grouping(self) -> PartitionChoice {
        match self {
            PartitionChoice::Custom { .. } => PartitionChoice::BeforeGrouping,
            other => other,
        }
    }

    /// Returns the choice for compound keys that begin with the whole key of this one.
    pub(crate) fn of_first<A: Key, B: Key>(self) -> PartitionChoice {
        match self {
            PartitionChoice::Custom { choose, .. } => PartitionChoice::Custom {
                choose,
                group_length: Some(<(A, B) as GroupBy<A>>::prefix_length),
            },
            other => other,
        }
    }

    /// Returns the partitioner of one map task. Groups by a prefix imply that the prefix alone decides the
    /// partition.
    pub(crate) fn partitioning(
        &self,
        partitions: u32,
        cuts: &[Vec<u8>],
        grouping: Option<fn(&[u8]) -> usize>,
    ) -> Partitioning {
        match self {
            _ if partitions == 1 => Partitioning::Single,
            PartitionChoice::Hash | PartitionChoice::BeforeGrouping => Partitioning::Hash {
                partitions,
                grouping,
            },
            PartitionChoice::TotalOrder => Partitioning::Range {
                cuts: cuts.to_vec(),
                grouping,
            },
            PartitionChoice::Custom {
                choose,
                group_length,
            } => {
                let choose = Arc::clone(choose);
                let group_length = *group_length;
                Partitioning::Custom {
                    partitions,
                    choose: Box::new(move |key| match group_length {
                        Some(length) => choose(&key[..length(key)], false, partitions),
                        None => choose(key, true, partitions),
                    }),
                }
            }
        }
    }
}

/// The key prefix that defines a group: the whole key, or a typed prefix of it.
pub(crate) struct Grouping<G> {
    /// Length in bytes of the encoded prefix of an encoded key; `None` groups by the whole key.
    pub prefix_length: Option<fn(&[u8]) -> usize>,
    types: PhantomData<fn() -> G>,
}

impl<G> Grouping<G> {
    pub(crate) fn whole_key() -> Self {
        Grouping {
            prefix_length: None,
            types: PhantomData,
        }
    }

    pub(crate) fn prefix(prefix_length: fn(&[u8]) -> usize) -> Self {
        Grouping {
            prefix_length: Some(prefix_length),
            types: PhantomData,
        }
    }
}
