//! Partitioning and grouping of keys, as chosen in the builder.

use std::marker::PhantomData;
use std::sync::Arc;

use napreduce_data::Partitioning;

use crate::codec::{Key, Scratch, Value};

/// A user's partitioner: maps a key and the number of partitions to a partition, from 0.
type Choose<K> = dyn for<'a> Fn(<K as Value>::Ref<'a>, u32) -> u32 + Send + Sync;

/// The partitioning of a job.
pub(crate) enum PartitionChoice<K: Key> {
    /// By a hash of the grouping prefix that is equal on all machines.
    Hash,
    /// By cuts found by sampling, so that the concatenated part files are sorted.
    TotalOrder,
    /// By a user function.
    Custom(Arc<Choose<K>>),
}

impl<K: Key> PartitionChoice<K> {
    /// Returns the choice for compound keys that begin with `K`.
    pub(crate) fn of_first<B: Key>(self) -> PartitionChoice<(K, B)> {
        match self {
            PartitionChoice::Hash => PartitionChoice::Hash,
            PartitionChoice::TotalOrder => PartitionChoice::TotalOrder,
            PartitionChoice::Custom(choose) => {
                PartitionChoice::Custom(Arc::new(move |(key, _), partitions| choose(key, partitions)))
            }
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
            PartitionChoice::Hash => Partitioning::Hash { partitions, grouping },
            PartitionChoice::TotalOrder => Partitioning::Range { cuts: cuts.to_vec(), grouping },
            PartitionChoice::Custom(choose) => {
                let choose = Arc::clone(choose);
                Partitioning::Custom {
                    partitions,
                    choose: Box::new(move |bytes| {
                        let scratch = Scratch::new();
                        let key =
                            K::decode_whole(bytes, &scratch).expect("a key that was just encoded decodes");
                        choose(key, partitions)
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
        Grouping { prefix_length: None, types: PhantomData }
    }

    pub(crate) fn prefix(prefix_length: fn(&[u8]) -> usize) -> Self {
        Grouping { prefix_length: Some(prefix_length), types: PhantomData }
    }
}
