//! The builder of a job: a source, a map stage with its choices, and the reduce that finishes it. Calls in
//! the wrong order do not compile.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codec::{GroupBy, Key, Value};
use crate::emit::Emit;
use crate::input::InputFormat;
use crate::output::{DeclaredOutput, NamedOutput, Output, OutputDefinition, OutputFormat, Text};
use crate::records::{PairOutput, WritePair};
use crate::settings::Settings;
use crate::state::Resumable;
use crate::user_code::{
    Aggregate, CombineStage, Combining, Fold, Grouping, MapClosure, Mapper, NoCombine, Outcome,
    PartitionChoice, ReduceClosure, Reducer, ResumableClosure, ResumableMapper, ResumableReducer,
};
use crate::values::Values;

use super::Job;
use super::inputs::InputMaps;
use super::pipeline::MapReduce;

/// One or several maps without a reduce yet. They emit keys `K` and values `V`.
///
/// The other parameters have defaults, which methods change: the combiner `C` by [`combine`](MapStage::combine), the group
/// `G` by [`group_by`](MapStage::group_by), and the output format `O` by [`output`](MapStage::output).
///
/// ```
/// use napreduce::builder::Sum;
/// use napreduce::testing::JobTest;
/// use napreduce::{Emit, Job};
///
/// let by_first_letter = || {
///     Job::text()
///         .map(|line: &str, out: &mut Emit<String, u64>| out.emit(line, 1))
///         .combine(Sum::add)
///         .partition_by(|line, partitions| u32::from(line.starts_with(char::is_uppercase)) % partitions)
///         .reduce(|line, counts, out| out.emit(line, counts.sum()))
/// };
/// let output = JobTest::new(by_first_letter).input("to\nBe\nor\nto\n").reduces(2).run();
/// assert_eq!(output.parts, [b"or\t1\nto\t2\n".to_vec(), b"Be\t1\n".to_vec()]);
/// ```
#[must_use = "a map is not a job yet; call `reduce` or `reducer`"]
pub struct MapStage<K: Key, V: Value, C = NoCombine, G = K, O = Text> {
    choices: Choices<K, V>,
    combine: C,
    grouping: Grouping<G>,
    output: O,
}

/// Choices for a stage that do not change its type.
struct Choices<K: Key, V: Value> {
    inputs: InputMaps<K, V>,
    partition: PartitionChoice,
    reduces: Option<u32>,
    named: Vec<Arc<dyn DeclaredOutput>>,
}

impl<K: Key, V: Value, O: OutputFormat> MapStage<K, V, NoCombine, K, O> {
    pub(super) fn over(
        inputs: InputMaps<K, V>,
        output: O,
        named: Vec<Arc<dyn DeclaredOutput>>,
    ) -> Self {
        let choices = Choices {
            inputs,
            partition: PartitionChoice::Hash,
            reduces: None,
            named,
        };
        MapStage {
            choices,
            combine: NoCombine,
            grouping: Grouping::whole_key(),
            output,
        }
    }
}

impl<K: Key, V: Value, G: Key, O: OutputFormat> MapStage<K, V, NoCombine, G, O> {
    /// Combines values of equal keys on the map side and wherever sorted runs are merged.
    ///
    /// The fold must be associative; it may be applied any number of times. How to finish the job:
    ///
    /// | to write | write |
    /// |---|---|
    /// | each key with its folded value, as typed pairs | [`reduce_by_key(fold)`](MapStage::reduce_by_key), without `combine` |
    /// | something made of the folded value | `.combine(fold)`, [`.reduce_total(\|key, total, out\| ...)`](MapStage::reduce_total) |
    /// | something made of what is left of the values, such as in a [`group_by`](MapStage::group_by) of combined keys | `.combine(fold)`, [`.reduce(\|key, values, out\| ...)`](MapStage::reduce) |
    ///
    /// For sums, counts, minima and the like there are [`sum`](MapStage::sum), [`count`](MapStage::count),
    /// [`min`](MapStage::min) and others, which combine by themselves.
    ///
    /// ```
    /// use napreduce::Job;
    /// use napreduce::builder::Sum;
    /// use napreduce::testing::JobTest;
    ///
    /// /// The mean length of the lines that begin with each letter.
    /// let means = || {
    ///     Job::text()
    ///         .flat_map(|line: &str| Some((line[..1].to_owned(), (line.len() as u64, 1u64))))
    ///         .combine(Sum::add)
    ///         .reduce_total(|letter, (length, lines), out| out.emit(letter, length / lines))
    /// };
    /// assert_eq!(JobTest::new(means).input("to\nbring\nbut\n").run().text(), "b\t4\nt\t2\n");
    /// ```
    pub fn combine<F>(self, fold: F) -> MapStage<K, V, Fold<V, F>, G, O>
    where
        F: Fn(&mut V::Owned, V::Owned) + Send + Sync + 'static,
    {
        MapStage {
            choices: self.choices,
            combine: Fold::new(fold),
            grouping: self.grouping,
            output: self.output,
        }
    }

    /// Makes an accumulator of each value, folds those of each group, and finishes the result.
    pub(super) fn aggregate<A: Value, X: Value>(
        self,
        prepare: impl Fn(V::Owned) -> A::Owned + Send + Sync + 'static,
        fold: impl Fn(&mut A::Owned, A::Owned) + Send + Sync + 'static,
        finish: impl Fn(A::Owned) -> X::Owned + Send + Sync + 'static,
    ) -> Job<O::Record>
    where
        O: PairOutput<G, X, Format: WritePair<G, X>>,
    {
        let combine = Aggregate::<A, _, _>::new(prepare, fold);
        let fold = combine.fold.clone();
        let reduce =
            move |group: G::Ref<'_>, values: &mut Values<'_, K, A>, out: &mut Output<O::Format>| {
                if let Some(total) = fold.total(values) {
                    O::Format::write(out, group, finish(total));
                }
            };
        let MapStage {
            choices,
            grouping,
            output,
            ..
        } = self.pairs();
        MapStage {
            choices,
            combine,
            grouping,
            output,
        }
        .finish(ReduceClosure::new(reduce))
    }
}

impl<K: Key, V: Key, O: OutputFormat> MapStage<K, V, NoCombine, K, O> {
    /// Emits each value as the second field of its key, so that the values of a group are sorted.
    pub(super) fn values_in_keys(self) -> MapStage<(K, V), (), NoCombine, K, O> {
        let Choices {
            inputs,
            partition,
            reduces,
            named,
        } = self.choices;
        let choices = Choices {
            inputs: inputs.values_in_keys(),
            partition: partition.of_first::<K, V>(),
            reduces,
            named,
        };
        let grouping = Grouping::prefix(<(K, V) as GroupBy<K>>::prefix_length);
        MapStage {
            choices,
            combine: NoCombine,
            grouping,
            output: self.output,
        }
    }
}

impl<K: Key, V: Value, F, G: Key, O: OutputFormat> MapStage<K, V, Fold<V, F>, G, O>
where
    F: Fn(&mut V::Owned, V::Owned) + Send + Sync + 'static,
{
    #[doc(hidden)]
    #[deprecated(
        since = "0.4.0",
        note = "call `reduce_by_key(fold)` instead of `combine(fold).totals()`"
    )]
    pub fn totals(self) -> Job<O::Record>
    where
        O: PairOutput<G, V, Format: WritePair<G, V>>,
    {
        self.pairs()
            .reduce_total(|group, total, out| O::Format::write(out, group, total))
    }

    /// Finishes the job with a closure that is called for each group with its key and the one value into
    /// which `combine` has folded all values.
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
    pub fn reduce_total<T, R>(self, reduce: T) -> Job<O::Item>
    where
        T: Fn(G::Ref<'_>, V::Owned, &mut Output<O>) -> R + Send + Sync + 'static,
        R: Outcome,
    {
        let fold = self.combine.clone();
        self.reduce(
            move |group, values: &mut Values<'_, K, V>, out: &mut Output<O>| {
                fold.total(values)
                    .map_or(Ok(()), |total| reduce(group, total, out).outcome())
            },
        )
    }
}

impl<K: Key, V: Value, C: Combining<V>, G: Key, O: OutputFormat> MapStage<K, V, C, G, O> {
    fn finish<R>(self, reducer: R) -> Job<O::Item>
    where
        R: Reducer<Group = G, Key = K, Value = C::Total, Output = O>,
    {
        let Choices {
            inputs,
            partition,
            reduces,
            named,
        } = self.choices;
        Job::new(MapReduce {
            inputs,
            combine: self.combine,
            partition,
            grouping: self.grouping,
            reducer,
            reduces,
            output: OutputDefinition::new(self.output, named),
            settings: Settings::default(),
        })
    }
}

impl<K: Key, V: Value, C: CombineStage<V>, G: Key, O: OutputFormat> MapStage<K, V, C, G, O> {
    /// Adds an input with its own format and map; its paths are given as `NAME=PATH`. All maps of a job emit
    /// the same types.
    ///
    /// ```
    /// use napreduce::builder::Sum;
    /// use napreduce::input::{ByteLines, TextLines};
    /// use napreduce::testing::JobTest;
    /// use napreduce::{Emit, Job};
    ///
    /// /// How many lines there are of each length: `lengths text=PATH... raw=PATH... --output DIR`.
    /// let lengths = || {
    ///     Job::inputs()
    ///         .add("text", TextLines, |line: &str, out: &mut Emit<u64, u64>| out.emit(line.chars().count() as u64, 1))
    ///         .add("raw", ByteLines, |line: &[u8], out| out.emit(line.len() as u64, 1))
    ///         .combine(Sum::add)
    ///         .reduce_total(|length, count, out| out.emit(length, count))
    /// };
    /// let test = JobTest::new(lengths).input_named("text", "é\nto\n").input_named("raw", b"\xff\n");
    /// assert_eq!(test.run().text(), "1\t2\n2\t1\n");
    /// test.assert_preemption_safe();
    /// ```
    pub fn add<I, F, R>(self, name: &str, format: I, map: F) -> Self
    where
        I: InputFormat,
        F: Fn(I::Record<'_>, &mut Emit<K, V>) -> R + Send + Sync + 'static,
        R: Outcome,
    {
        self.add_mapper(name, format, MapClosure::new(map))
    }

    /// As [`add`](MapStage::add), for a mapper with state, set-up and finish.
    ///
    /// ```
    /// use napreduce::input::TextLines;
    /// # use napreduce::{Emit, Job, Mapper, TaskError};
    /// # #[derive(Clone)]
    /// # struct Longest;
    /// # impl Mapper for Longest {
    /// #     type Input = TextLines;
    /// #     type Key = u64;
    /// #     type Value = String;
    /// #     fn map(&mut self, line: &str, out: &mut Emit<u64, String>) -> Result<(), TaskError> {
    /// #         out.emit(line.len() as u64, line);
    /// #         Ok(())
    /// #     }
    /// # }
    /// let job = Job::inputs()
    ///     .add_mapper("texts", TextLines, Longest)
    ///     .add("words", TextLines, |word: &str, out| out.emit(0, word))
    ///     .reduce(|length, lines, out| out.emit(length, lines.count()));
    /// # let _ = job;
    /// ```
    pub fn add_mapper<M>(mut self, name: &str, format: M::Input, mapper: M) -> Self
    where
        M: Mapper<Key = K, Value = V>,
    {
        self.choices.inputs = self.choices.inputs.with(Some(name), format, mapper);
        self
    }

    /// As [`add_mapper`](MapStage::add_mapper), with a state that is saved in checkpoints; see
    /// [`Source::mapper_resumable`](super::Source::mapper_resumable).
    ///
    /// ```
    /// use napreduce::input::TextLines;
    /// use napreduce::testing::JobTest;
    /// # use napreduce::{Emit, Job, Mapper, Resumable, TaskError};
    /// #[derive(Resumable, Clone, Default)]
    /// struct Numbered(u64);
    /// # impl Mapper for Numbered {
    /// #     type Input = TextLines;
    /// #     type Key = String;
    /// #     type Value = u64;
    /// #     fn map(&mut self, line: &str, out: &mut Emit<String, u64>) -> Result<(), TaskError> {
    /// #         self.0 += 1;
    /// #         out.emit(line, self.0);
    /// #         Ok(())
    /// #     }
    /// # }
    ///
    /// let job = || {
    ///     Job::inputs()
    ///         .add_mapper_resumable("ranked", TextLines, Numbered::default())
    ///         .add("others", TextLines, |line: &str, out| out.emit(line, 0))
    ///         .reduce(|line, ranks, out| out.emit(line, ranks.sum()))
    /// };
    /// let test = JobTest::new(job).input_named("ranked", "b\na\n").input_named("others", "c\n");
    /// assert_eq!(test.run().text(), "a\t2\nb\t1\nc\t0\n");
    /// test.assert_preemption_safe();
    /// ```
    pub fn add_mapper_resumable<M>(self, name: &str, format: M::Input, mapper: M) -> Self
    where
        M: Mapper<Key = K, Value = V> + Resumable,
    {
        self.add_mapper(name, format, ResumableMapper(mapper))
    }

    /// Chooses the partition (from 0) of each key, or after [`group_by`](MapStage::group_by) of each group; the second
    /// argument is the number of partitions.
    ///
    /// The choice must depend on nothing else. It is called in every map task, and again when one is repeated: if it
    /// chose by a random number, by a hash with a seed of its process (that of a `HashMap`), by the time or by the host,
    /// the values of a key would be divided among several reduces, each of which writes the key. A hash with a fixed
    /// seed is the same everywhere.
    ///
    /// ```
    /// use napreduce::testing::JobTest;
    /// use napreduce::{Emit, Job};
    ///
    /// /// The lengths of lines by their first letter, in order; the letters before `m` in the first part.
    /// let lengths = || {
    ///     Job::text()
    ///         .map(|line: &str, out: &mut Emit<(String, u64), ()>| out.emit((&line[..1], line.len() as u64), ()))
    ///         .group_by::<String>()
    ///         .partition_by(|letter, partitions| u32::from(letter >= "m") % partitions)
    ///         .reduce(|letter, lengths, out| {
    ///             while let Some(((_, length), ())) = lengths.next_entry() {
    ///                 out.emit(letter, length);
    ///             }
    ///         })
    /// };
    /// let output = JobTest::new(lengths).input("tree\nbe\nto\n").reduces(2).run();
    /// assert_eq!(output.parts, [b"b\t2\n".to_vec(), b"t\t2\nt\t4\n".to_vec()]);
    /// ```
    pub fn partition_by<F>(mut self, choose: F) -> Self
    where
        F: Fn(G::Ref<'_>, u32) -> u32 + Send + Sync + 'static,
    {
        self.choices.partition = PartitionChoice::custom(choose, &self.grouping);
        self
    }

    /// Partitions the keys by ranges found by sampling the input, so that the concatenated part files are
    /// sorted.
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
        self.choices.partition = PartitionChoice::TotalOrder;
        self
    }

    /// Groups by a prefix of the key: with keys `(String, u64)`, `group_by::<String>()` makes one group for
    /// each string, its values in the order of the number. [`partition_by`](MapStage::partition_by) comes after it.
    pub fn group_by<P: Key>(self) -> MapStage<K, V, C, P, O>
    where
        K: GroupBy<P>,
    {
        let MapStage {
            mut choices,
            combine,
            output,
            ..
        } = self;
        choices.partition = choices.partition.before_grouping();
        let grouping = Grouping::prefix(<K as GroupBy<P>>::prefix_length);
        MapStage {
            choices,
            combine,
            grouping,
            output,
        }
    }

    /// Sets the number of reduce tasks and thus of part files, unless the command line (`--reduces`) or the
    /// driver sets it.
    ///
    /// ```
    /// use napreduce::testing::JobTest;
    /// use napreduce::{Emit, Job};
    ///
    /// let by_length = || {
    ///     Job::text()
    ///         .map(|line: &str, out: &mut Emit<u64, ()>| out.emit(line.len() as u64, ()))
    ///         .reduces(8)
    ///         .reduce(|length, lines, out| out.emit(length, lines.count()))
    /// };
    /// assert_eq!(JobTest::new(by_length).input("to\nbe\nnot\n").run().parts.len(), 8);
    /// ```
    pub fn reduces(mut self, reduces: u32) -> Self {
        self.choices.reduces = Some(reduces);
        self
    }

    /// Declares a named output for the reduce; see [`Output::to`].
    pub fn named_output<N: OutputFormat>(mut self, output: &NamedOutput<N>) -> Self {
        self.choices.named.push(Arc::new(output.clone()));
        self
    }

    /// Sets another output format than text. It is set before the fold or `reduce` that writes it; folds such as
    /// [`count`](MapStage::count) write formats of [pairs](PairOutput).
    pub fn output<P: OutputFormat>(self, format: P) -> MapStage<K, V, C, G, P> {
        MapStage {
            choices: self.choices,
            combine: self.combine,
            grouping: self.grouping,
            output: format,
        }
    }

    /// Changes the output format to that of the part files with pairs.
    pub(super) fn pairs<X: Value>(self) -> MapStage<K, V, C, G, O::Format>
    where
        O: PairOutput<G, X>,
    {
        let MapStage {
            choices,
            combine,
            grouping,
            output,
        } = self;
        MapStage {
            choices,
            combine,
            grouping,
            output: output.into_format(),
        }
    }

    /// Finishes the job with a closure that is called for each group with its key and its values.
    pub fn reduce<F, R>(self, reduce: F) -> Job<O::Item>
    where
        F: Fn(G::Ref<'_>, &mut Values<'_, K, V>, &mut Output<O>) -> R + Send + Sync + 'static,
        R: Outcome,
    {
        self.reducer(ReduceClosure::<G, K, V, O, F>::new(reduce))
    }

    /// As [`reduce`](MapStage::reduce), with a state that is saved in checkpoints by its serde type. It is
    /// `start` at the beginning of each task and passes from group to group.
    ///
    /// A task may be stopped inside a group. The closure then returns when [`Values::is_cut`] returns true,
    /// with the partial result in its state, and is called again with the remaining values.
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
    pub fn reduce_resumable<S, F, R>(self, start: S, reduce: F) -> Job<O::Item>
    where
        S: Serialize + DeserializeOwned + Clone + Send + Sync + 'static,
        F: Fn(&mut S, G::Ref<'_>, &mut Values<'_, K, V>, &mut Output<O>) -> R
            + Send
            + Sync
            + 'static,
        R: Outcome,
    {
        self.reducer(ResumableClosure::<G, K, V, O, S, F>::new(start, reduce))
    }

    /// Finishes the job with a reducer that has state, set-up and finish.
    pub fn reducer<R>(self, reducer: R) -> Job<O::Item>
    where
        R: Reducer<Group = G, Key = K, Value = V, Output = O>,
    {
        self.finish(reducer)
    }

    /// As [`reducer`](MapStage::reducer), with a state that is saved in checkpoints: it must be
    /// [`Resumable`], which is derived. Its `save` and `restore` are not called.
    ///
    /// ```
    /// use napreduce::output::Text;
    /// use napreduce::testing::JobTest;
    /// use napreduce::{Emit, Job, Output, Reducer, Resumable, TaskError, Values};
    ///
    /// /// Numbers the words of a partition.
    /// #[derive(Resumable, Clone, Default)]
    /// struct Numbered {
    ///     words: u64,
    /// }
    ///
    /// impl Reducer for Numbered {
    ///     type Group = String;
    ///     type Key = String;
    ///     type Value = ();
    ///     type Output = Text;
    ///
    ///     fn reduce(
    ///         &mut self,
    ///         word: &str,
    ///         _: &mut Values<'_, String, ()>,
    ///         out: &mut Output<Text>,
    ///     ) -> Result<(), TaskError> {
    ///         self.words += 1;
    ///         out.emit(self.words, word);
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let job = || {
    ///     Job::text()
    ///         .map(|word: &str, out: &mut Emit<String, ()>| out.emit(word, ()))
    ///         .reducer_resumable(Numbered::default())
    /// };
    /// let test = JobTest::new(job).input("to\nbe\n");
    /// assert_eq!(test.run().text(), "1\tbe\n2\tto\n");
    /// test.assert_preemption_safe();
    /// ```
    pub fn reducer_resumable<R>(self, reducer: R) -> Job<O::Item>
    where
        R: Reducer<Group = G, Key = K, Value = V, Output = O> + Resumable,
    {
        self.reducer(ResumableReducer(reducer))
    }
}
