//! The first stage of a job: one input, and the methods that set its map.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codec::{Key, Value};
use crate::emit::Emit;
use crate::input::{InputFormat, Skip};
use crate::output::{DeclaredOutput, NamedOutput, Output, OutputDefinition, OutputFormat, Text};
use crate::state::Resumable;
use crate::user_code::{
    FlatMap, FlatMapper, MapClosure, Mapper, NoCombine, Outcome, PartClosure, PartMap,
    ResumableMapper, ResumablePartClosure,
};

use super::Job;
use super::inputs::InputMaps;
use super::pipeline::MapOnly;
use super::stages::MapStage;

/// An input without a map yet.
///
/// ```
/// use napreduce::Job;
/// use napreduce::output::FixedBytes;
///
/// let upper_case = Job::text().map_only(|line: &str, out| out.emit(line.to_uppercase(), ()));
/// let halves = Job::fixed_records(8).map_only_to(FixedBytes { length: 4 }, |record: &[u8], out| out.write(&record[..4]));
/// # let _ = (upper_case, halves);
/// ```
#[must_use = "an input is not a job yet; call `map`, `mapper` or `map_only`"]
pub struct Source<I, O = Text> {
    input: I,
    output: O,
    named: Vec<Arc<dyn DeclaredOutput>>,
}

impl<I: InputFormat> Source<I> {
    pub(crate) fn new(input: I) -> Self {
        Source {
            input,
            output: Text,
            named: Vec::new(),
        }
    }
}

impl<I: InputFormat, O: OutputFormat> Source<I, O> {
    /// Declares a named output for the closure of a job without reduce, or for the reduce.
    ///
    /// ```
    /// use napreduce::output::{NamedOutput, Text};
    /// use napreduce::testing::JobTest;
    /// use napreduce::Job;
    ///
    /// let apart = || {
    ///     let long = NamedOutput::new("long", Text);
    ///     Job::text().named_output(&long).map_only(move |line: &str, out| match line.len() {
    ///         0..4 => out.emit(line, ()),
    ///         length => out.to(&long).emit(length, line),
    ///     })
    /// };
    /// let output = JobTest::new(apart).input("to\nbring\n").run();
    /// assert_eq!((output.text().as_str(), output.named_text("long").as_str()), ("to\n", "5\tbring\n"));
    /// ```
    pub fn named_output<N: OutputFormat>(mut self, output: &NamedOutput<N>) -> Self {
        self.named.push(Arc::new(output.clone()));
        self
    }

    /// Sets another output format than text.
    ///
    /// ```
    /// use napreduce::Job;
    /// use napreduce::records::Records;
    ///
    /// fn lengths() -> Job<(String, u64)> {
    ///     Job::text().output(Records::default()).map_only(|line: &str, out| out.emit(line, line.len() as u64))
    /// }
    /// # let _ = lengths();
    /// ```
    pub fn output<P: OutputFormat>(self, format: P) -> Source<I, P> {
        Source {
            input: self.input,
            output: format,
            named: self.named,
        }
    }

    /// Emits any number of records for each record of the input.
    ///
    /// The types of the second parameter set the key and value types: `out: &mut Emit<String, u64>`.
    pub fn map<K, V, F, R>(self, map: F) -> MapStage<K, V, NoCombine, K, O>
    where
        K: Key,
        V: Value,
        F: Fn(I::Record<'_>, &mut Emit<K, V>) -> R + Send + Sync + 'static,
        R: Outcome,
    {
        self.mapper(MapClosure::new(map))
    }

    /// Emits all items that a function returns for a record: keys, or pairs of key and value. The types of keys and
    /// values are those of the items; `&str` counts as `String`.
    ///
    /// The function returns an iterator, an `Option`, an array or a `Vec`. The items of a function such as
    /// [`words`](crate::words) may borrow from the record and are not copied. A closure names the type of its
    /// parameter and returns items that own what they hold; Rust does not let it return an iterator that borrows
    /// from its parameter. [`map`](Source::map) has no such limit.
    ///
    /// ```
    /// use napreduce::testing::JobTest;
    /// use napreduce::{Job, words};
    ///
    /// let wordcount = || Job::text().flat_map(words).count();
    /// assert_eq!(JobTest::new(wordcount).input("to be or\nnot to be\n").run().text(), "be\t2\nnot\t1\nor\t1\nto\t2\n");
    ///
    /// let longest = || {
    ///     Job::text()
    ///         .flat_map(|line: &str| line.split_once(' ').map(|(name, rest)| (name.to_owned(), rest.len() as u64)))
    ///         .max()
    /// };
    /// assert_eq!(JobTest::new(longest).input("to be or\nnot\nto bring\n").run().text(), "to\t5\n");
    /// ```
    ///
    /// An item may be a `Result`, such as in `Some(parse(line))`. Its error fails the task, or skips the record if
    /// it is a [`BadRecord`](super::BadRecord).
    ///
    /// # Panics
    ///
    /// Panics if the function returns a `Result` instead of items: as an iterator it would drop errors.
    pub fn flat_map<K, V, F>(self, map: F) -> MapStage<K, V, NoCombine, K, O>
    where
        K: Key,
        V: Value,
        F: for<'r> FlatMap<'r, I, K, V> + Send + Sync + 'static,
    {
        self.mapper(FlatMapper::new(map))
    }

    /// Sets a mapper with state, set-up and finish.
    pub fn mapper<M: Mapper<Input = I>>(
        self,
        mapper: M,
    ) -> MapStage<M::Key, M::Value, NoCombine, M::Key, O> {
        MapStage::over(
            InputMaps::none().with(None, self.input, mapper),
            self.output,
            self.named,
        )
    }

    /// As [`mapper`](Source::mapper), with a state that is saved in checkpoints: it must be [`Resumable`],
    /// which is derived. Its `save` and `restore` are not called.
    ///
    /// ```
    /// use napreduce::input::TextLines;
    /// use napreduce::testing::JobTest;
    /// use napreduce::{Emit, Job, Mapper, Resumable, TaskError};
    ///
    /// /// Emits the longest line of each split, once, at the end.
    /// #[derive(Resumable, Clone, Default)]
    /// struct Longest {
    ///     line: String,
    /// }
    ///
    /// impl Mapper for Longest {
    ///     type Input = TextLines;
    ///     type Key = u64;
    ///     type Value = String;
    ///
    ///     fn map(&mut self, line: &str, _: &mut Emit<u64, String>) -> Result<(), TaskError> {
    ///         if line.len() > self.line.len() {
    ///             line.clone_into(&mut self.line);
    ///         }
    ///         Ok(())
    ///     }
    ///
    ///     fn finish(&mut self, out: &mut Emit<u64, String>) -> Result<(), TaskError> {
    ///         out.emit(self.line.len() as u64, &self.line);
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let job = || {
    ///     Job::text().mapper_resumable(Longest::default()).reduce(|length, lines, out| {
    ///         while let Some(line) = lines.next() {
    ///             out.emit(length, line);
    ///         }
    ///     })
    /// };
    /// let test = JobTest::new(job).input("to\nbring\nbe\n");
    /// assert_eq!(test.run().text(), "5\tbring\n");
    /// test.assert_preemption_safe();
    /// ```
    pub fn mapper_resumable<M: Mapper<Input = I> + Resumable>(
        self,
        mapper: M,
    ) -> MapStage<M::Key, M::Value, NoCombine, M::Key, O> {
        self.mapper(ResumableMapper(mapper))
    }

    /// Finishes a job without reduce; part files are in the order of the input.
    pub fn map_only<F, R>(self, map: F) -> Job<O::Item>
    where
        F: Fn(I::Record<'_>, &mut Output<O>) -> R + Send + Sync + 'static,
        R: Outcome,
    {
        self.part_map(PartClosure::new(map))
    }

    /// Finishes a job without reduce that writes another format than text: `output` and `map_only` in one call.
    pub fn map_only_to<P, F, R>(self, output: P, map: F) -> Job<P::Item>
    where
        P: OutputFormat,
        F: Fn(I::Record<'_>, &mut Output<P>) -> R + Send + Sync + 'static,
        R: Outcome,
    {
        self.output(output).map_only(map)
    }

    /// As [`map_only`](Source::map_only), with a state that is saved in checkpoints by its serde type. It is
    /// `start` at the beginning of each file and passes from record to record. If several tasks read a file,
    /// each begins with `start`.
    ///
    /// ```
    /// use napreduce::Job;
    /// use napreduce::testing::JobTest;
    ///
    /// /// Lines that differ from the one before.
    /// let changes = || {
    ///     Job::text().map_only_resumable(String::new(), |before: &mut String, line: &str, out| {
    ///         if line != before {
    ///             out.emit(line, ());
    ///             line.clone_into(before);
    ///         }
    ///     })
    /// };
    /// let test = JobTest::new(changes).input("to\nto\nbe\nto\n");
    /// assert_eq!(test.run().text(), "to\nbe\nto\n");
    /// test.assert_preemption_safe();
    /// ```
    pub fn map_only_resumable<S, F, R>(self, start: S, map: F) -> Job<O::Item>
    where
        S: Serialize + DeserializeOwned + Clone + Send + Sync + 'static,
        F: Fn(&mut S, I::Record<'_>, &mut Output<O>) -> R + Send + Sync + 'static,
        R: Outcome,
    {
        self.part_map(ResumablePartClosure::new(start, map))
    }

    /// Finishes a job without reduce whose map has set-up, finish and hooks.
    pub(crate) fn part_map(self, map: impl PartMap<I, O>) -> Job<O::Item> {
        let output = OutputDefinition::new(self.output, self.named);
        Job::new(MapOnly {
            input: self.input,
            output,
            map,
            bad_input: Skip::default(),
        })
    }
}
