//! The builder of a job definition, from an input through closures to an output.
//!
//! A job is built in stages: a [`Source`] with `map` or `mapper` becomes a [`MapStage`], and this with
//! `reduce` or `reducer` a [`Job`]. Each stage has methods only for the choices that are valid there.
//!
//! ```
//! use napreduce::builder::{MapStage, Source};
//! use napreduce::input::TextLines;
//! use napreduce::{Emit, Job};
//!
//! let source: Source<TextLines> = Job::text();
//! let stage: MapStage<String, u64> =
//!     source.map(|line: &str, out: &mut Emit<String, u64>| out.emit(line, 1));
//! let job: Job = stage.reduce(|line, counts, out| out.emit(line, counts.sum()));
//! # let _ = job;
//! ```

mod error;
mod folds;
mod inputs;
mod join;
mod pipeline;
mod sampling;
mod source;
mod stages;

use std::marker::PhantomData;

use self::inputs::InputMaps;
pub(crate) use join::RECORD_INPUTS;
pub use join::{Join, JoinLeft, JoinRow, Keyed};
pub(crate) use pipeline::Pipeline;
pub use source::Source;
pub use stages::MapStage;

use crate::codec::{Key, Value};
use crate::input::{ByteLines, FixedRecords, InputFormat, LossyLines, TextLines, WholeFiles};
pub use crate::numbers::{Number, Sum, WideInteger};
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
#[cfg(any(
    feature = "avro",
    feature = "csv",
    feature = "json-lines",
    feature = "parquet"
))]
use crate::rows::TypedRow;
#[cfg(feature = "sequence-file")]
use crate::sequence_file::{SequenceFiles, Writable};
pub use crate::user_code::{BadRecord, CombineStage, Fold, NoCombine, Outcome};
#[doc(hidden)]
pub use crate::user_code::{FlatMap, KeyOrPair};
pub use crate::values::OwnedValues;

/// A finished job definition; functions from parameters to a job return it.
///
/// Begin with an input: [`Job::text`], [`Job::bytes`], [`Job::fixed_records`], [`Job::whole_files`] or
/// [`Job::input`]. Continue with `flat_map` or `map`, and finish with a fold such as `count`, or with `reduce`. Both of
/// these count words:
///
/// ```
/// use napreduce::builder::Sum;
/// use napreduce::{Emit, Job, words};
///
/// fn short() -> Job<(String, u64)> {
///     Job::text().flat_map(words).count()
/// }
///
/// fn long() -> Job {
///     Job::text()
///         .map(|line: &str, out: &mut Emit<String, u64>| words(line).for_each(|word| out.emit(word, 1)))
///         .combine(Sum::add)
///         .reduce(|word, counts, out| out.emit(word, counts.sum()))
/// }
/// # let _ = (short(), long());
/// ```
///
/// `T` is the type as which a record of the output is read back, the
/// [`Item`](crate::output::OutputFormat::Item) of its format: `String`, a line, for text, and `(K, V)` for
/// typed [`Records<K, V>`](crate::records::Records).
///
/// ```
/// use napreduce::Job;
/// use napreduce::records::Records;
///
/// fn lengths() -> Job<(String, u64)> {
///     Job::text().map_only_to(Records::default(), |line: &str, out| out.emit(line, line.len() as u64))
/// }
/// # let _ = lengths();
/// ```
#[must_use = "a job is what a definition returns; it runs when the program does"]
pub struct Job<T = String> {
    pub(crate) pipeline: Box<dyn Pipeline>,
    record: PhantomData<fn() -> T>,
}

impl<T> Job<T> {
    pub(crate) fn new(pipeline: impl Pipeline + 'static) -> Job<T> {
        Job {
            pipeline: Box::new(pipeline),
            record: PhantomData,
        }
    }
}

impl Job {
    /// Reads lines of UTF-8 text without their newline. Invalid UTF-8 fails the task with the position of the
    /// byte.
    pub fn text() -> Source<TextLines> {
        Job::input(TextLines)
    }

    /// Reads lines of text without their newline; invalid UTF-8 becomes U+FFFD.
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

    /// Reads lines of arbitrary bytes without their newline.
    pub fn bytes() -> Source<ByteLines> {
        Job::input(ByteLines)
    }

    /// Reads records of `length` bytes; file sizes must be multiples of it.
    pub fn fixed_records(length: usize) -> Source<FixedRecords> {
        Job::input(FixedRecords { length })
    }

    /// Reads each file as one record.
    pub fn whole_files() -> Source<WholeFiles> {
        Job::input(WholeFiles)
    }

    /// Reads typed records that another job wrote with [`Records`](crate::records::Records), as pairs of key
    /// and value.
    pub fn records<K: Key, V: Value>() -> Source<TypedRecords<K, V>> {
        Job::input(TypedRecords::default())
    }

    /// Reads rows of comma-separated values with a header line; see [`CsvRows`](crate::rows::CsvRows) for
    /// other forms.
    #[cfg(feature = "csv")]
    pub fn csv<R: TypedRow>() -> Source<CsvRows<R>> {
        Job::input(CsvRows::default())
    }

    /// As `csv`, separated by tabs.
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

    /// Reads one JSON value per line.
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

    /// Reads rows of Avro container files; see [`AvroRows`](crate::rows::AvroRows).
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

    /// Reads rows of Parquet files; see [`ParquetRows`](crate::rows::ParquetRows).
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

    /// Reads Hadoop SequenceFiles as pairs of key and value.
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

    /// Begins a job with several inputs, each with its own name, format and map: [`add`](MapStage::add) them.
    ///
    /// ```
    /// use napreduce::input::TextLines;
    /// use napreduce::{Emit, Job};
    ///
    /// /// Words of books that no list has: `unknown books=PATH... lists=PATH... --output DIR`.
    /// fn unknown() -> Job {
    ///     Job::inputs()
    ///         .add("books", TextLines, |line: &str, out: &mut Emit<String, bool>| {
    ///             napreduce::words(line).for_each(|word| out.emit(word, false));
    ///         })
    ///         .add("lists", TextLines, |word: &str, out| out.emit(word, true))
    ///         .combine(|is_listed, more| *is_listed |= more)
    ///         .reduce_total(|word, is_listed, out| if !is_listed { out.emit(word, ()) })
    /// }
    /// # let test = napreduce::testing::JobTest::new(unknown);
    /// # let test = test.input_named("books", "to bee or not\n").input_named("lists", "to\nbe\nor\nnot\n");
    /// # assert_eq!(test.run().text(), "bee\n");
    /// ```
    pub fn inputs<K: Key, V: Value>() -> MapStage<K, V> {
        MapStage::over(InputMaps::none(), Text, Vec::new())
    }

    /// Begins a join of two inputs by key: this one is the left input, and [`with`](JoinLeft::with) adds the right
    /// one. Each has its name, format and a function that returns the key and the row of a record.
    ///
    /// A row is any type with serde's `Serialize` and `Deserialize` that owns what it holds.
    ///
    /// ```
    /// use napreduce::Job;
    /// # #[cfg(feature = "csv")] {
    /// use napreduce::rows::CsvRows;
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct User {
    ///     id: u64,
    ///     name: String,
    /// }
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Order {
    ///     user: u64,
    ///     amount: f64,
    /// }
    ///
    /// /// `orders users=PATH... orders=PATH... --output DIR`
    /// fn orders() -> Job<(String, f64)> {
    ///     Job::join("users", CsvRows::<User>::default(), |user| (user.id, user))
    ///         .with("orders", CsvRows::<Order>::default(), |order| (order.user, order))
    ///         .inner(|_, user, order, out| out.emit(&user.name, order.amount))
    /// }
    /// # let test = napreduce::testing::JobTest::new(orders);
    /// # let test = test.input_named("users", "id,name\n1,ann\n2,bob\n").input_named("orders", "user,amount\n2,1.5\n");
    /// # assert_eq!(test.run().text(), "bob\t1.5\n");
    /// # }
    /// ```
    pub fn join<I, F, T>(name: &str, format: I, keyed: F) -> JoinLeft<I, F>
    where
        I: InputFormat,
        F: Fn(I::Record<'_>) -> T + Send + Sync + 'static,
        T: Keyed<Row: JoinRow>,
    {
        JoinLeft::new(name, format, keyed)
    }

    /// Reads a custom input format.
    pub fn input<I: InputFormat>(format: I) -> Source<I> {
        Source::new(format)
    }
}
