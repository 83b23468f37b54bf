//! A job as a user defines it: from an input through closures to an output.
//!
//! Owns the builder and the finished definition. Does not own the command line (`program`), what runs in a task process
//! (`task`) nor where it runs (live runtime).
//!
//! A job goes from stage to stage: a [`Source`] with `map` or `mapper` becomes a [`MapStage`], and that with
//! `reduce` or `reducer` a [`Job`]. What may be chosen at which stage is what the stage has methods for.
//!
//! ```
//! use napreduce::builder::{MapStage, NoCombine, Source};
//! use napreduce::input::TextLines;
//! use napreduce::output::Text;
//! use napreduce::{Emit, Job, Mapper};
//!
//! let source: Source<TextLines> = Job::text();
//! let stage = source.map(|line: &str, out: &mut Emit<String, u64>| out.emit(line, 1));
//!
//! fn is_a_stage<M: Mapper>(_: &MapStage<M, NoCombine, String, Text>) {}
//! is_a_stage(&stage);
//!
//! let job: Job = stage.reduce(|line, counts, out| out.emit(line, counts.sum()));
//! # let _ = job;
//! ```

mod pipeline;
mod sampling;
mod stages;

pub(crate) use pipeline::Pipeline;
pub use stages::{MapStage, Source};

use crate::codec::{Key, Value};
use crate::input::{ByteLines, FixedRecords, InputFormat, TextLines, WholeFiles};
use crate::records::TypedRecords;
#[cfg(feature = "avro")]
use crate::rows::AvroRows;
#[cfg(feature = "csv")]
use crate::rows::CsvRows;
#[cfg(feature = "json-lines")]
use crate::rows::JsonRows;
#[cfg(any(feature = "avro", feature = "csv", feature = "json-lines"))]
use crate::rows::TypedRow;
#[cfg(feature = "sequence-file")]
use crate::sequence_file::{SequenceFiles, Writable};
pub use crate::user_code::{
    CombineStage, Fold, MapClosure, NoCombine, Outcome, ReduceClosure, ResumableClosure,
};

/// A finished job definition: what a function from parameters to `Job` returns.
///
/// Build one from an input: [`Job::text`], [`Job::bytes`], [`Job::fixed_records`], [`Job::whole_files`] or
/// [`Job::input`]; then `map`, perhaps `combine` and other choices, and `reduce`.
///
/// ```
/// use napreduce::{Emit, Job};
///
/// fn wordcount(_: &()) -> Job {
///     Job::text()
///         .map(|line: &str, out: &mut Emit<String, u64>| {
///             for word in line.split_ascii_whitespace() {
///                 out.emit(word, 1);
///             }
///         })
///         .combine(|count, more| *count += more)
///         .reduce(|word, counts, out| out.emit(word, counts.sum()))
/// }
/// # let _ = wordcount(&());
/// ```
#[must_use = "a job is what a definition returns; it runs when the program does"]
pub struct Job {
    pub(crate) pipeline: Box<dyn Pipeline>,
}

impl Job {
    pub(crate) fn new(pipeline: impl Pipeline + 'static) -> Job {
        Job { pipeline: Box::new(pipeline) }
    }

    /// Lines of UTF-8 text, without their newline; a byte that is not UTF-8 fails the task and is named.
    pub fn text() -> Source<TextLines> {
        Job::input(TextLines)
    }

    /// Lines of any bytes, without their newline.
    pub fn bytes() -> Source<ByteLines> {
        Job::input(ByteLines)
    }

    /// Records of `length` bytes each; files must be a whole number of them.
    pub fn fixed_records(length: usize) -> Source<FixedRecords> {
        Job::input(FixedRecords { length })
    }

    /// One record for each file.
    pub fn whole_files() -> Source<WholeFiles> {
        Job::input(WholeFiles)
    }

    /// Typed records that another job wrote with [`Records`](crate::records::Records), as pairs of key and
    /// value.
    pub fn records<K: Key, V: Value>() -> Source<TypedRecords<K, V>> {
        Job::input(TypedRecords::default())
    }

    /// Rows of comma-separated values, under a line that names the columns; see
    /// [`CsvRows`](crate::rows::CsvRows) for other forms.
    #[cfg(feature = "csv")]
    pub fn csv<R: TypedRow>() -> Source<CsvRows<R>> {
        Job::input(CsvRows::default())
    }

    /// The same with tabs instead of commas.
    ///
    /// ```
    /// use napreduce::Job;
    /// use napreduce::testing::JobTest;
    ///
    /// let job = || Job::tsv::<(String, u64)>().map_only(|(name, count), out| out.emit(name, count));
    /// assert_eq!(JobTest::new(job).input("name\tcount\na,b\t1\n").run().text(), "a,b\t1\n");
    /// ```
    #[cfg(feature = "csv")]
    pub fn tsv<R: TypedRow>() -> Source<CsvRows<R>> {
        Job::input(CsvRows::default().delimiter(b'\t'))
    }

    /// A JSON value on each line.
    ///
    /// ```
    /// use napreduce::Job;
    /// use napreduce::testing::JobTest;
    ///
    /// let job = || Job::json_lines::<(String, u64)>().map_only(|(name, count), out| out.emit(name, count));
    /// assert_eq!(JobTest::new(job).input("[\"a\",1]\n").run().text(), "a\t1\n");
    /// ```
    #[cfg(feature = "json-lines")]
    pub fn json_lines<R: TypedRow>() -> Source<JsonRows<R>> {
        Job::input(JsonRows::default())
    }

    /// Rows of Avro container files; see [`AvroRows`](crate::rows::AvroRows).
    ///
    /// ```
    /// use napreduce::Job;
    ///
    /// let job = Job::avro::<(String, u64)>().map_only(|(word, count), out| out.emit(word, count));
    /// # let _ = job;
    /// ```
    #[cfg(feature = "avro")]
    pub fn avro<R: TypedRow>() -> Source<AvroRows<R>> {
        Job::input(AvroRows::default())
    }

    /// Hadoop's SequenceFiles, as pairs of key and value.
    ///
    /// ```
    /// use napreduce::Job;
    ///
    /// let job = Job::sequence_file::<String, i64>().map_only(|(word, count), out| out.emit(word, count));
    /// # let _ = job;
    /// ```
    #[cfg(feature = "sequence-file")]
    pub fn sequence_file<K: Writable, V: Writable>() -> Source<SequenceFiles<K, V>> {
        Job::input(SequenceFiles::default())
    }

    /// An input format of one's own.
    pub fn input<I: InputFormat>(format: I) -> Source<I> {
        Source::new(format)
    }
}
