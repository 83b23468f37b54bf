//! The builder of a job, stage by stage: a source, a map stage with its choices, and the reduce that finishes it.
//!
//! Owns which choice may be made when; wrong orders do not compile. Does not own what the choices do.

use crate::codec::{GroupBy, Key, Value};
use crate::emit::Emit;
use crate::input::InputFormat;
use crate::output::{Output, OutputFormat, Text};
use crate::settings::Settings;
use crate::user_code::{
    CombineStage, Fold, Grouping, MapClosure, Mapper, NoCombine, Outcome, PartClosure, PartMap,
    PartitionChoice, ReduceClosure, Reducer,
};
use crate::values::Values;

use super::Job;
use super::pipeline::{MapOnly, MapReduce};

/// An input, waiting for its map.
#[must_use = "an input is no job before it has a map: call `map`, `mapper` or `map_only`"]
pub struct Source<I> {
    input: I,
}

impl<I: InputFormat> Source<I> {
    pub(crate) fn new(input: I) -> Self {
        Source { input }
    }

    /// Emits any number of records for each record of the input.
    ///
    /// The types that follow are read off the second parameter: `out: &mut Emit<String, u64>`.
    pub fn map<K, V, F, R>(self, map: F) -> MapStage<MapClosure<I, K, V, F>, NoCombine, K, Text>
    where
        K: Key,
        V: Value,
        F: Fn(I::Record<'_>, &mut Emit<K, V>) -> R + Send + Sync + 'static,
        R: Outcome,
    {
        self.mapper(MapClosure::new(map))
    }

    /// A map with state, set-up and finish of its own.
    pub fn mapper<M: Mapper<Input = I>>(self, mapper: M) -> MapStage<M, NoCombine, M::Key, Text> {
        MapStage {
            input: self.input,
            mapper,
            combine: NoCombine,
            partition: PartitionChoice::Hash { grouping: None },
            grouping: Grouping::whole_key(),
            output: Text,
        }
    }

    /// A job without reduce that writes lines of text; part files follow the order of the input.
    pub fn map_only<F, R>(self, map: F) -> Job
    where
        F: Fn(I::Record<'_>, &mut Output<Text>) -> R + Send + Sync + 'static,
        R: Outcome,
    {
        self.map_only_to(Text, map)
    }

    /// A job without reduce that writes another format than text.
    pub fn map_only_to<O, F, R>(self, output: O, map: F) -> Job
    where
        O: OutputFormat,
        F: Fn(I::Record<'_>, &mut Output<O>) -> R + Send + Sync + 'static,
        R: Outcome,
    {
        let map = move |record: I::Record<'_>, out: &mut Output<O>| map(record, out).outcome();
        Job::new(MapOnly { input: self.input, output, map: PartClosure::new(map) })
    }

    /// A job without reduce whose map has set-up, finish and hooks of its own.
    pub(crate) fn part_map(self, map: impl PartMap<I, Text>) -> Job {
        Job::new(MapOnly { input: self.input, output: Text, map })
    }
}

/// A map, waiting for its reduce; `G` is what makes a group, `O` the output format.
#[must_use = "a map is no job before it has a reduce: call `reduce` or `reducer`"]
pub struct MapStage<M: Mapper, C, G, O> {
    input: M::Input,
    mapper: M,
    combine: C,
    partition: PartitionChoice<M::Key>,
    grouping: Grouping<G>,
    output: O,
}

impl<M: Mapper, G: Key, O: OutputFormat> MapStage<M, NoCombine, G, O> {
    /// Folds values of equal keys before they travel and wherever sorted runs are merged.
    ///
    /// The fold must be associative, and must not care how often it is applied.
    pub fn combine<F>(self, fold: F) -> MapStage<M, Fold<M::Value, F>, G, O>
    where
        F: Fn(&mut <M::Value as Value>::Owned, <M::Value as Value>::Owned) + Send + Sync + 'static,
    {
        MapStage {
            input: self.input,
            mapper: self.mapper,
            combine: Fold::new(fold),
            partition: self.partition,
            grouping: self.grouping,
            output: self.output,
        }
    }
}

impl<M: Mapper, C: CombineStage<M::Value>, G: Key, O: OutputFormat> MapStage<M, C, G, O> {
    /// Chooses the partition (from 0) of each key; the second argument is the number of partitions.
    pub fn partition_by<F>(mut self, choose: F) -> Self
    where
        F: Fn(<M::Key as Value>::Ref<'_>, u32) -> u32 + Send + Sync + 'static,
    {
        self.partition = PartitionChoice::Custom(std::sync::Arc::new(choose));
        self
    }

    /// Divides the keys by ranges found by sampling the input, so that all part files together are in order.
    pub fn total_order(mut self) -> Self {
        self.partition = PartitionChoice::TotalOrder { grouping: self.grouping.prefix_length };
        self
    }

    /// Makes groups by a prefix of the key: with keys `(String, u64)`, `group_by::<String>()` gives one group for each
    /// string, its values in order of the number.
    pub fn group_by<P: Key>(self) -> MapStage<M, C, P, O>
    where
        M::Key: GroupBy<P>,
    {
        let prefix_length: fn(&[u8]) -> usize = <M::Key as GroupBy<P>>::prefix_length;
        MapStage {
            input: self.input,
            mapper: self.mapper,
            combine: self.combine,
            partition: self.partition.grouped_by(prefix_length),
            grouping: Grouping::prefix(prefix_length),
            output: self.output,
        }
    }

    /// Writes another format than text.
    pub fn output<P: OutputFormat>(self, format: P) -> MapStage<M, C, G, P> {
        MapStage {
            input: self.input,
            mapper: self.mapper,
            combine: self.combine,
            partition: self.partition,
            grouping: self.grouping,
            output: format,
        }
    }

    /// Called for each group with its key and its values; finishes the job.
    pub fn reduce<F, R>(self, reduce: F) -> Job
    where
        F: Fn(G::Ref<'_>, &mut Values<'_, M::Key, M::Value>, &mut Output<O>) -> R + Send + Sync + 'static,
        R: Outcome,
    {
        self.reducer(ReduceClosure::<G, M::Key, M::Value, O, F>::new(reduce))
    }

    /// A reduce with state, set-up and finish of its own; finishes the job.
    pub fn reducer<R>(self, reducer: R) -> Job
    where
        R: Reducer<Group = G, Key = M::Key, Value = M::Value, Output = O>,
    {
        Job::new(MapReduce {
            input: self.input,
            mapper: self.mapper,
            combine: self.combine,
            partition: self.partition,
            grouping: self.grouping,
            reducer,
            output: self.output,
            settings: Settings::default(),
        })
    }
}
