//! A job as a user defines it: from an input through closures to an output.
//!
//! Owns the builder and the finished definition. Does not own the command line (`program`), what runs in a
//! task process (`task`) nor where it runs (live runtime).
//!
//! A job goes from stage to stage: a [`Source`] with `map` or `mapper` becomes a [`MapStage`], and that with
//! `reduce` or `reducer` a [`Job`]. What may be chosen at which stage is what the stage has methods for.
//!
//! ```
//! use napreduce::builder::{MapStage, NoCombine, Source};
//! use napreduce::input::TextLines;
//! use napreduce::output::Text;
//! use napreduce::{Emit, Job};
//!
//! let source: Source<TextLines> = Job::text();
//! let stage: MapStage<String, u64, NoCombine, String, Text> =
//!     source.map(|line: &str, out: &mut Emit<String, u64>| out.emit(line, 1));
//! let job: Job = stage.reduce(|line, counts, out| out.emit(line, counts.sum()));
//! # let _ = job;
//! ```

mod inputs;
mod pipeline;
mod sampling;
mod source;
mod stages;

use self::inputs::InputMaps;
pub(crate) use pipeline::Pipeline;
pub use source::Source;
pub use stages::MapStage;

use crate::codec::{Key, Value};
use crate::input::{
    ByteLines, FixedRecords, InputError, InputFile, InputFormat, InputSplit, LossyLines, TextLines,
    WholeFiles, combine,
};
use crate::output::Text;
use crate::records::TypedRecords;
#[cfg(feature = "avro")]
use crate::rows::AvroRows;
#[cfg(feature = "csv")]
use crate::rows::CsvRows;
#[cfg(feature = "json-lines")]
use crate::rows::JsonRows;
#[cfg(feature = "parquet")]
use crate::rows::ParquetRows;
#[cfg(any(feature = "avro", feature = "csv", feature = "json-lines", feature = "parquet"))]
use crate::rows::TypedRow;
#[cfg(feature = "sequence-file")]
use crate::sequence_file::{SequenceFiles, Writable};
use crate::settings::Settings;
pub use crate::user_code::{
    BadRecord, CombineStage, Fold, NoCombine, Outcome, ReduceClosure, ResumableClosure,
};
pub use crate::values::OwnedValues;

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

    /// Divides the files of each input into splits, in the order of the inputs, and notes which
    /// belong to which.
    pub(crate) fn split(
        &mut self,
        files: &[Vec<InputFile>],
        split_size: u64,
        settings: &mut Settings,
    ) -> Result<Vec<InputSplit>, InputError> {
        let mut of_inputs = self.pipeline.plan(files, split_size)?;
        if settings.combine_files {
            of_inputs = of_inputs.into_iter().map(|splits| combine(splits, split_size)).collect();
        }
        settings.split_counts = of_inputs.iter().map(|splits| splits.len() as u32).collect();
        self.pipeline.set(settings.clone());
        Ok(of_inputs.concat())
    }

    /// Lines of UTF-8 text, without their newline; a byte that is not UTF-8 fails the task and is named.
    pub fn text() -> Source<TextLines> {
        Job::input(TextLines)
    }

    /// Lines of text, without their newline; bytes that are no UTF-8 become U+FFFD.
    ///
    /// ```
    /// use napreduce::Job;
    /// use napreduce::testing::JobTest;
    ///
    /// let job = || Job::lossy_text().map_only(|line: &str, out| out.emit(line, ()));
    /// assert_eq!(JobTest::new(job).input(b"caf\xe9\nth\xc3\xa9\n").run().text(), "caf\u{fffd}\nthé\n");
    /// ```
    pub fn lossy_text() -> Source<LossyLines> {
        Job::input(LossyLines)
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

    /// Rows of Parquet files; see [`ParquetRows`](crate::rows::ParquetRows).
    ///
    /// ```
    /// use napreduce::Job;
    ///
    /// let job = Job::parquet::<(String, u64)>().map_only(|(word, count), out| out.emit(word, count));
    /// # let _ = job;
    /// ```
    #[cfg(feature = "parquet")]
    pub fn parquet<R: TypedRow>() -> Source<ParquetRows<R>> {
        Job::input(ParquetRows::default())
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

    /// Several inputs, each with a name, a format and a map of its own: [`add`](MapStage::add) them.
    ///
    /// ```
    /// use napreduce::input::TextLines;
    /// use napreduce::{Emit, Job};
    ///
    /// /// Words of books that no list has: `unknown books=PATH... lists=PATH... --output DIR`.
    /// fn unknown(_: &()) -> Job {
    ///     Job::inputs()
    ///         .add("books", TextLines, |line: &str, out: &mut Emit<String, bool>| {
    ///             napreduce::words(line).for_each(|word| out.emit(word, false));
    ///         })
    ///         .add("lists", TextLines, |word: &str, out| out.emit(word, true))
    ///         .combine(|is_listed, more| *is_listed |= more)
    ///         .reduce_total(|word, is_listed, out| if !is_listed { out.emit(word, ()) })
    /// }
    /// # let test = napreduce::testing::JobTest::new(|| unknown(&()));
    /// # let test = test.input_named("books", "to bee or not\n").input_named("lists", "to\nbe\nor\nnot\n");
    /// # assert_eq!(test.run().text(), "bee\n");
    /// ```
    pub fn inputs<K: Key, V: Value>() -> MapStage<K, V, NoCombine, K, Text> {
        MapStage::over(InputMaps::none(), Vec::new())
    }

    /// An input format of one's own.
    pub fn input<I: InputFormat>(format: I) -> Source<I> {
        Source::new(format)
    }
}
