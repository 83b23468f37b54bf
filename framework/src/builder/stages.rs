//! The builder of a job, stage by stage: a source, a map stage with its choices, and the reduce that finishes it.
//!
//! Owns which choice may be made when; wrong orders do not compile. Does not own what the choices do.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codec::{GroupBy, Key, Value};
use crate::emit::Emit;
use crate::input::InputFormat;
use crate::output::{Output, OutputFormat, Text};
use crate::settings::Settings;
use crate::user_code::{
    CombineStage, Fold, Grouping, MapClosure, Mapper, NoCombine, Outcome, PartClosure, PartMap,
    PartitionChoice, ReduceClosure, Reducer, ResumableClosure,
};
use crate::values::Values;

use super::Job;
use super::pipeline::{MapOnly, MapReduce};

/// An input, waiting for its map.
///
/// ```
/// use napreduce::Job;
/// use napreduce::output::FixedBytes;
///
/// let upper_case = Job::text().map_only(|line: &str, out| out.emit(line.to_uppercase(), ()));
/// let halves = Job::fixed_records(8).map_only_to(FixedBytes { length: 4 }, |record: &[u8], out| out.write(&record[..4]));
/// # let _ = (upper_case, halves);
/// ```
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
///
/// ```
/// use napreduce::testing::JobTest;
/// use napreduce::{Emit, Job};
///
/// let by_first_letter = || {
///     Job::text()
///         .map(|line: &str, out: &mut Emit<String, u64>| out.emit(line, 1))
///         .combine(|count, more| *count += more)
///         .partition_by(|line, partitions| u32::from(line.starts_with(char::is_uppercase)) % partitions)
///         .reduce(|line, counts, out| out.emit(line, counts.sum()))
/// };
/// let output = JobTest::new(by_first_letter).input("to\nBe\nor\nto\n").reduces(2).run();
/// assert_eq!(output.parts, [b"or\t1\nto\t2\n".to_vec(), b"Be\t1\n".to_vec()]);
/// ```
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

impl<M: Mapper, F, G: Key, O: OutputFormat> MapStage<M, Fold<M::Value, F>, G, O>
where
    F: Fn(&mut <M::Value as Value>::Owned, <M::Value as Value>::Owned) + Send + Sync + 'static,
{
    /// Called for each group with its key and one value, into which the fold of `combine` has brought all of
    /// them; finishes the job.
    ///
    /// ```
    /// use napreduce::testing::JobTest;
    /// use napreduce::{Emit, Job};
    ///
    /// let longest = || {
    ///     Job::text()
    ///         .map(|line: &str, out: &mut Emit<u64, String>| out.emit(line.len() as u64 % 2, line))
    ///         .combine(|longest, more| if more.len() > longest.len() { *longest = more })
    ///         .reduce_total(|is_odd, longest, out| out.emit(is_odd, longest))
    /// };
    /// assert_eq!(JobTest::new(longest).input("to\nbring\nmore\nbut\n").run().text(), "0\tmore\n1\tbring\n");
    /// ```
    pub fn reduce_total<T, R>(self, reduce: T) -> Job
    where
        T: Fn(G::Ref<'_>, <M::Value as Value>::Owned, &mut Output<O>) -> R + Send + Sync + 'static,
        R: Outcome,
    {
        let fold = self.combine.clone();
        self.reduce(move |group, values: &mut Values<'_, M::Key, M::Value>, out: &mut Output<O>| {
            let total = values.owned().reduce(|mut total, more| {
                fold.bring(&mut total, more);
                total
            });
            // There is none where the first value could not be read, which fails the task.
            total.map_or(Ok(()), |total| reduce(group, total, out).outcome())
        })
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
    ///
    /// ```
    /// use napreduce::testing::JobTest;
    /// use napreduce::{Emit, Job};
    ///
    /// let sorted = || {
    ///     Job::text()
    ///         .map(|line: &str, out: &mut Emit<String, ()>| out.emit(line, ()))
    ///         .total_order()
    ///         .reduce(|line, copies, out| copies.owned().for_each(|()| out.emit(line, ())))
    /// };
    /// assert_eq!(JobTest::new(sorted).input("b\nd\na\nc\n").reduces(2).run().text(), "a\nb\nc\nd\n");
    /// ```
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

    /// As [`reduce`](MapStage::reduce), with a state that is saved with the task: it begins as `start` in
    /// each task, goes on from group to group, and is kept in checkpoints as its serde type says.
    ///
    /// A task may be stopped in the middle of a group. Then the closure returns when [`Values::is_cut`] says
    /// so, with what it has so far in its state, and is called again with the values that are left.
    ///
    /// ```
    /// use napreduce::testing::assert_preemption_safe;
    /// use napreduce::{Emit, Job};
    ///
    /// /// Counts lines; a task may be checkpointed among those of one length.
    /// fn count() -> Job {
    ///     Job::text()
    ///         .map(|line: &str, out: &mut Emit<u64, ()>| out.emit(line.len() as u64, ()))
    ///         .reduce_resumable(0, |so_far: &mut u64, length, lines, out| {
    ///             *so_far += lines.count();
    ///             if !lines.is_cut() {
    ///                 out.emit(length, std::mem::take(so_far));
    ///             }
    ///         })
    /// }
    ///
    /// assert_preemption_safe(count, "to\nbe\nor\nnot\n");
    /// ```
    pub fn reduce_resumable<S, F, R>(self, start: S, reduce: F) -> Job
    where
        S: Serialize + DeserializeOwned + Clone + Send + Sync + 'static,
        F: Fn(&mut S, G::Ref<'_>, &mut Values<'_, M::Key, M::Value>, &mut Output<O>) -> R
            + Send
            + Sync
            + 'static,
        R: Outcome,
    {
        self.reducer(ResumableClosure::<G, M::Key, M::Value, O, S, F>::new(start, reduce))
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
