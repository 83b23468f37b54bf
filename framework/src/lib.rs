//! A MapReduce framework. Running tasks can be suspended or checkpointed without losing work.
//!
//! The crate root has the names that nearly every program uses. The others are in modules: [`input`] and
//! [`output`] for formats, [`records`] for typed files between jobs, [`codec`] for keys and values as bytes,
//! [`builder`] for the stages of a job, [`run`] for jobs in a program of your own, [`dataset`] for their
//! results, [`program`] for drivers, errors and reports, [`task`] for task identities and errors, [`testing`]
//! for tests, and, with features, `streaming` for commands and `rows` for formats.
//!
//! # A job
//!
//! A job is a function that returns a [`Job`]. Its closures run in task processes, which execute this same
//! program again, so one [`main`](main()) makes the program driver, local runner and task process:
//!
//! ```no_run
//! use napreduce::{Job, words};
//!
//! fn wordcount() -> Job<(String, u64)> {
//!     Job::text().flat_map(words).count()
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     napreduce::main(wordcount)
//! }
//! ```
//!
//! It runs as `wordcount INPUT... --output DIR` on this machine or, with `--cluster`, on a cluster; `--help`
//! lists all options. `Job<(String, u64)>` says that the output is pairs: lines of text in a directory that a
//! person names, typed records where a program or another job reads them.
//!
//! [`flat_map`](builder::Source::flat_map) takes a function that returns keys, or pairs of key and value. The
//! folds that finish a job are [`count`](builder::MapStage::count), [`sum`](builder::MapStage::sum),
//! [`min`](builder::MapStage::min), [`max`](builder::MapStage::max), [`mean`](builder::MapStage::mean),
//! [`top`](builder::MapStage::top), [`distinct`](builder::MapStage::distinct),
//! [`collect`](builder::MapStage::collect) and others. Closures of your own emit records and reduce groups:
//!
//! ```
//! use napreduce::{Emit, Job, words};
//!
//! /// The words that begin with each letter, longest first; a definition with a parameter.
//! fn by_letter(least: &usize) -> Job {
//!     let least = *least;
//!     Job::text()
//!         .map(move |line: &str, out: &mut Emit<String, String>| {
//!             for word in words(line).filter(|word| word.len() >= least) {
//!                 out.emit(&word[..word.chars().next().map_or(0, char::len_utf8)], word);
//!             }
//!         })
//!         .reduce(|letter, words, out| {
//!             let mut words: Vec<String> = words.owned().collect();
//!             words.sort_by_key(|word| std::cmp::Reverse(word.len()));
//!             out.emit(letter, words.join(" "));
//!         })
//! }
//! # let test = napreduce::testing::JobTest::new(|| by_letter(&2)).input("to be or not to bring\n");
//! # assert_eq!(test.run().text(), "b\tbring be\nn\tnot\no\tor\nt\tto to\n");
//! ```
//!
//! Key and value types name an owned/borrowed pair: `Emit<String, u64>` takes `&str` and `u64`, so no record
//! is allocated. Records are sorted by the encoded bytes of their [`Key`], which are in the order of its
//! values. Any other type can be a [`Value`]; [`Serde<T>`](codec::Serde) makes one of a serde type. A closure
//! may return a `Result`: an error fails its task, which is retried, or the whole job with
//! [`TaskError::fatal`].
//!
//! # A job in your own program
//!
//! A program that calls [`init`] at the beginning of `main` runs jobs at any time, several at once, and gets
//! their results as values; see [`run`].
//!
//! ```
//! use napreduce::run::Local;
//! use napreduce::{Dataset, Job, words};
//!
//! fn wordcount() -> Job<(String, u64)> {
//!     Job::text().flat_map(words).count()
//! }
//!
//! # fn main() -> Result<(), napreduce::program::Error> {
//! let lines = Dataset::lines(["to be or", "not to be"])?;
//! let counts = napreduce::job(wordcount).inputs([&lines]).reduces(1).run(&Local::threads())?;
//! assert_eq!(counts.collect()?[0], ("be".to_owned(), 2));
//! # Ok(())
//! # }
//! ```
//!
//! # State across records
//!
//! Closures keep nothing from one record to the next. Types that implement [`Mapper`] and [`Reducer`] do, and
//! have [`setup`](Reducer::setup) and [`finish`](Reducer::finish). With a state that is [`Resumable`] a task can
//! be checkpointed and restored in another process:
//!
//! ```
//! use napreduce::output::Text;
//! use napreduce::{Job, Output, Reducer, Resumable, TaskError, Values, words};
//!
//! /// Numbers the words of a partition.
//! #[derive(Resumable, Clone, Default)]
//! struct Numbered(u64);
//!
//! impl Reducer for Numbered {
//!     type Group = String;
//!     type Key = String;
//!     type Value = ();
//!     type Output = Text;
//!
//!     fn reduce(
//!         &mut self,
//!         word: &str,
//!         _: &mut Values<'_, String, ()>,
//!         out: &mut Output<Text>,
//!     ) -> Result<(), TaskError> {
//!         self.0 += 1;
//!         out.emit(self.0, word);
//!         Ok(())
//!     }
//! }
//!
//! fn numbered() -> Job {
//!     Job::text().flat_map(words).reducer_resumable(Numbered::default())
//! }
//! # let test = napreduce::testing::JobTest::new(numbered).input("to be or not to be\n");
//! # assert_eq!(test.run().text(), "1\tbe\n2\tnot\n3\tor\n4\tto\n");
//! # test.assert_preemption_safe();
//! ```
//!
//! [`reduce_resumable`](builder::MapStage::reduce_resumable) takes a closure whose state the framework saves.
//!
//! # Values in order
//!
//! The values of a group are ordered by the remaining fields of their key (a secondary sort): emit a key of
//! several fields, group by the first ones, and read the others with [`Values::next_entry`]. Keys of several
//! fields are tuples, or structs with `#[derive(Key)]`.
//!
//! ```
//! use napreduce::{Emit, Job};
//!
//! /// The daily change of temperature of each city, from lines CITY DATE DEGREES in any order.
//! fn changes(_: &()) -> Job {
//!     Job::text()
//!         .map(|line: &str, out: &mut Emit<(String, String), i64>| -> Result<(), std::num::ParseIntError> {
//!             if let [city, date, degrees] = line.split(' ').collect::<Vec<_>>()[..] {
//!                 out.emit((city, date), degrees.parse()?);
//!             }
//!             Ok(())
//!         })
//!         .group_by::<String>()
//!         .reduce(|city, readings, out| {
//!             let mut before = None;
//!             while let Some(((_, date), degrees)) = readings.next_entry() {
//!                 if let Some(before) = before.replace(degrees) {
//!                     out.emit((city, date), degrees - before);
//!                 }
//!             }
//!         })
//! }
//! # let output = napreduce::testing::JobTest::new(|| changes(&()))
//! #     .input("Oslo 01-03 -7\nOslo 01-01 -2\nRome 01-01 9\nOslo 01-02 -4\n")
//! #     .run();
//! # assert_eq!(output.text(), "Oslo\t01-02\t-2\nOslo\t01-03\t-3\n");
//! ```
//!
//! # A join
//!
//! [`Job::join`] joins two inputs by key. On the command line their paths are given with their names:
//! `named users=users.csv orders=orders.csv --output DIR`.
//!
//! ```
//! use napreduce::Job;
//! use napreduce::input::TextLines;
//!
//! fn fields(line: &str) -> Option<(String, String)> {
//!     line.split_once(',').map(|(id, field)| (id.to_owned(), field.to_owned()))
//! }
//!
//! fn named() -> Job<(String, String)> {
//!     Job::join("users", TextLines, fields)
//!         .with("orders", TextLines, fields)
//!         .inner(|_, user, amount, out| out.emit(user, amount))
//! }
//! # let test = napreduce::testing::JobTest::new(named);
//! # let test = test.input_named("users", "1,ann\n2,bob\n").input_named("orders", "2,30\n1,12\n3,99\n");
//! # assert_eq!(test.run().text(), "ann\t12\nbob\t30\n");
//! ```
//!
//! Two [datasets](Dataset) are joined by [`join`](Dataset::join), without names.
//!
//! # Several inputs
//!
//! Other jobs with several inputs [`add`](builder::MapStage::add) them, each with its own name, format and map;
//! all maps emit the same types.
//!
//! ```
//! use napreduce::input::TextLines;
//! use napreduce::{Emit, Job, words};
//!
//! /// Words of books that no list has: `unknown books=PATH... lists=PATH... --output DIR`.
//! fn unknown() -> Job {
//!     Job::inputs()
//!         .add("books", TextLines, |line: &str, out: &mut Emit<String, bool>| {
//!             words(line).for_each(|word| out.emit(word, false));
//!         })
//!         .add("lists", TextLines, |word: &str, out| out.emit(word, true))
//!         .combine(|is_listed, more| *is_listed |= more)
//!         .reduce_total(|word, is_listed, out| if !is_listed { out.emit(word, ()) })
//! }
//! # let test = napreduce::testing::JobTest::new(unknown);
//! # let test = test.input_named("books", "to bee or not\n").input_named("lists", "to\nbe\nor\nnot\n");
//! # assert_eq!(test.run().text(), "bee\n");
//! ```
//!
//! `--bad-input fail|skip|N` sets the handling of records for which a map returns
//! [`BadRecord`](builder::BadRecord). [`Emit::input`] returns the input position of a record, and
//! [`Output::to`] writes to a [`NamedOutput`](output::NamedOutput), a side output next to the part files.
//!
//! # A chain
//!
//! A driver runs several jobs. [`dataset`](program::JobRun::dataset) keeps the output of one between the jobs,
//! as a [`Dataset`] that the next one reads; its files are removed when nothing reads them any more.
//!
//! ```no_run
//! use napreduce::program::Error;
//! use napreduce::{Driver, Job, Program, words};
//!
//! fn count() -> Job<(String, u64)> {
//!     Job::text().flat_map(words).count()
//! }
//!
//! fn top(most: &usize) -> Job<(String, u64)> {
//!     Job::records().top_by_value(*most)
//! }
//!
//! fn drive(driver: &mut Driver, _: &()) -> Result<(), Error> {
//!     let counts = driver.job(count).dataset()?;
//!     driver.job(top).parameters(&10).inputs([&counts]).run().map(drop)
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     Program::new().about("Finds the most frequent words").drive(drive)
//! }
//! ```
//!
//! To decide when a loop ends, read a dataset with [`fold`](Dataset::fold) or [`collect`](Dataset::collect).
//!
//! # Tests
//!
//! The feature `testing` has a kit that runs a job inside a test, without processes. A
//! [`JobTest`](testing::JobTest) sets the input, the split size and the memory, and runs the loops of real
//! tasks.
//!
//! ```toml
//! [dev-dependencies]
//! napreduce = { path = "../napreduce/framework", features = ["testing"] }
//! ```
//!
//! ```
//! use napreduce::testing::{JobTest, assert_preemption_safe};
//! # use napreduce::{Emit, Job, words};
//! # fn wordcount(_: &()) -> Job {
//! #     Job::text()
//! #         .map(|line: &str, out: &mut Emit<String, u64>| words(line).for_each(|word| out.emit(word, 1)))
//! #         .reduce(|word, counts, out| out.emit(word, counts.sum()))
//! # }
//!
//! let input = "to be or\nnot to be\n";
//! let output = JobTest::new(|| wordcount(&())).input(input).split_size(4).run();
//! assert_eq!(output.text(), "be\t2\nnot\t1\nor\t1\nto\t2\n");
//!
//! assert_preemption_safe(|| wordcount(&()), input);
//! ```
//!
//! # Preemption
//!
//! A scheduler or an operator may take the slot of a running task for another job. The task is suspended (its
//! process is stopped), checkpointed, killed, or left to finish; the output is byte-identical in all cases. A
//! checkpoint is made between two records of a map or two groups of a reduce. It holds the input position,
//! the emitted or written records, the counters, and the state of user code:
//!
//! | code | when `save` is called | result |
//! |---|---|---|
//! | a closure | never | it has none |
//! | the state of [`reduce_resumable`](builder::MapStage::reduce_resumable) | between two values | it is saved by its serde type |
//! | a [`Resumable`] mapper or reducer | as below | it is saved by the serde types of its fields |
//! | [`Mapper`] | between two records | [`save`](Mapper::save): [`Save::Saved`], [`Save::Stateless`], or [`Save::Unsupported`] (default) |
//! | [`Reducer`] | between two groups; between two values if it [`resumes_in_group`](Reducer::resumes_in_group) | as a mapper |
//! | [`OutputFormat`](output::OutputFormat) | with its reducer | as a mapper |
//!
//! Tasks whose code returns `Unsupported` are suspended, killed or left to finish, but never checkpointed. A
//! cluster whose policy checkpoints such tasks rejects the job.
//! [`assert_preemption_safe`](testing::assert_preemption_safe) tests all of it inside a test: at every
//! record, every group and every value, once and repeatedly. On a cluster, try `nap task suspend`, `nap task
//! checkpoint` and `nap task resume` on a running task, then see `nap job history`.
//!
//! # Counters and progress
//!
//! User counters of [`counter!`] appear in the job report next to the built-in ones. Each record is counted
//! once, however often its task was retried or preempted. A task that reads no record for a long time is
//! treated as hung and retried; code that works on one record for minutes calls [`progress()`] meanwhile.
//!
//! ```
//! use napreduce::{Job, counter, progress};
//!
//! fn longest(_: &()) -> Job {
//!     Job::whole_files().map_only(|file, out| {
//!         let mut longest = 0;
//!         for (number, line) in file.bytes.split(|byte| *byte == b'\n').enumerate() {
//!             if number % 1_000_000 == 0 {
//!                 progress();
//!             }
//!             counter!("lines").add(1);
//!             longest = longest.max(line.len());
//!         }
//!         out.emit(longest, ());
//!     })
//! }
//! # let output = napreduce::testing::JobTest::new(|| longest(&())).input("one\nthree\n").run();
//! # assert_eq!((output.text().as_str(), output.counters.get("lines")), ("5\n", 3));
//! ```
//!
//! # Features, systems and versions
//!
//! | feature | adds | compiles |
//! |---|---|---|
//! | `cli` (default) | [`main`](main()) and the flags of job programs | `clap` |
//! | `cluster` (default) | `--cluster` and `run::Cluster`: jobs on a cluster | `napreduce-cluster` |
//! | `gzip`, `zstd` (default) | input in these compressions | `flate2`, `ruzstd` |
//! | `bzip2`, `xz`, `lz4`, `snappy` | input in these compressions | `bzip2`, `crc32fast`, `lz4_flex`, `lzma-rust2`, `snap` |
//! | `csv`, `json-lines` | `rows`: typed rows, read and written | `csv` |
//! | `avro`, `sequence-file` | rows of Avro files and Hadoop's SequenceFiles, read | `flate2` |
//! | `parquet` | rows of Parquet files, read and written | `arrow-array`, `arrow-select`, `bytes`, `parquet`, `serde_arrow` |
//! | `parquet-zstd` | the same with zstd pages; the only feature that needs a C compiler | `arrow-array`, `arrow-select`, `bytes`, `parquet`, `serde_arrow` |
//! | `s3`, `gcs`, `azure`, `hdfs` | inputs, outputs and checkpoints in these stores, by their URIs | `async-trait`, `bytes`, `futures-util`, `getrandom`, `graviola`, `hdfs-native`, `hmac`, `http`, `md-5`, `object_store`, `quick-xml`, `reqwest`, `rustls-graviola`, `rustls-pki-types`, `sha2`, `tokio` |
//! | `streaming` | `streaming`: commands as mappers and reducers, as in `nap` | `clap` |
//! | `guests` | `--on`: jobs on Spark and other engines | `clap`, `napreduce-guests` |
//! | `testing` | [`testing`], the test kit for jobs; for dev-dependencies | |
//!
//! `default-features = false` disables the default ones. The crate requires Linux 5.4 or later and Rust 1.95 or
//! later; only a new minor version raises the required compiler. Before 1.0 a minor version may change the API;
//! a patch version does not.

// On docs.rs each item says which feature it needs.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(missing_docs)]

#[cfg(not(target_os = "linux"))]
compile_error!(
    "napreduce needs Linux 5.4 or later: it suspends and monitors tasks with Linux system calls"
);

// The derive macros refer to this crate by its name, also inside the crate itself.
extern crate self as napreduce;

pub mod builder;
pub mod codec;
mod counter;
mod emit;
pub mod input;
mod limits;
#[cfg(all(doctest, feature = "csv", feature = "json-lines", feature = "parquet"))]
#[doc = include_str!("../../docs/cookbook.md")]
mod cookbook {}
#[cfg(doctest)]
#[doc = include_str!("../../docs/embedding.md")]
mod embedding {}
#[cfg(doctest)]
mod must_use;
mod numbers;
pub mod output;
pub mod program;
#[cfg(all(doctest, feature = "cli"))]
#[doc = include_str!("../../README.md")]
mod readme {}
#[cfg(all(doctest, feature = "cli"))]
#[doc = include_str!("../README.md")]
mod package_readme {}
#[cfg(doctest)]
#[doc = include_str!("../derive/README.md")]
mod derive_readme {}
pub mod records;
#[cfg(any(
    feature = "avro",
    feature = "csv",
    feature = "json-lines",
    feature = "parquet"
))]
pub mod rows;
pub mod run;
#[cfg(feature = "sequence-file")]
pub mod sequence_file;
#[cfg_attr(
    not(feature = "cli"),
    allow(dead_code, reason = "the flags alone name some of it")
)]
mod settings;
mod state;
#[cfg(feature = "streaming")]
pub mod streaming;
pub mod task;
#[cfg(any(doc, feature = "testing"))]
pub mod testing;
mod user_code;
mod values;
mod words;

#[doc(inline)]
pub use builder::Job;
#[doc(inline)]
pub use codec::{Key, Value};
pub use emit::Emit;
/// A counter whose name is computed at run time; [`counter!`] is for constant names.
///
/// ```
/// use napreduce::{Job, counter};
///
/// fn count_matches(pattern: &'static str) -> Job {
///     let found = counter(&format!("lines with {pattern}"));
///     Job::text().map_only(move |line, out| {
///         if line.contains(pattern) {
///             found.add(1);
///             out.emit(line, ());
///         }
///     })
/// }
/// # let _ = count_matches("to be");
/// ```
pub use napreduce_task::counter;

/// Reports progress for a task that neither reads nor writes for a long time.
///
/// ```
/// fn search(haystack: &[u64], needle: u64) -> bool {
///     haystack.chunks(1 << 20).any(|chunk| {
///         napreduce::progress();
///         chunk.contains(&needle)
///     })
/// }
/// # assert!(search(&[1, 2], 2));
/// ```
pub use napreduce_task::progress;
#[doc(inline)]
pub use output::Output;
#[doc(inline)]
pub use program::dataset::{self, Dataset};
#[cfg(feature = "cli")]
#[doc(inline)]
pub use program::main;
#[doc(inline)]
pub use program::{Driver, Program, init};
#[doc(inline)]
pub use run::{JobRequest, job};
#[doc(hidden)]
pub use state::derive_support as state_support;
pub use state::{Resumable, Save};
#[doc(inline)]
pub use task::{TaskError, TaskInfo};
pub use user_code::{Mapper, Reducer};
pub use values::Values;
pub use words::words;
