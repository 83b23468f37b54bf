//! Inputs of a job: formats and their readers, expansion of INPUT arguments to files, and planning of splits.
//!
//! Modules import in one direction: errors at the bottom; then opening, compressions by name, paths; the seam
//! of formats; the planning of splits; sources, windows, lines; and the formats on top.
//!
//! ```
//! use napreduce::Job;
//! use napreduce::input::TextLines;
//! use napreduce::testing::JobTest;
//!
//! let job = || Job::input(TextLines).map_only(|line: &str, out| out.emit(line.len(), ()));
//! assert_eq!(JobTest::new(job).input("to be\n").run().text(), "5\n");
//! ```

mod check;
#[cfg(any(feature = "avro", feature = "parquet", feature = "sequence-file"))]
pub(crate) mod container;
mod error;
mod fixed;
mod format;
mod lines;
#[cfg(feature = "storage")]
mod objects;
mod opening;
mod paths;
mod place;
mod skip;
mod source;
mod splits;
mod stamps;
mod text;
mod text_records;
mod whole;
mod window;

pub(crate) use self::check::TYPED_RECORDS;
pub use self::error::InputError;
pub(crate) use self::error::{remedy, which};
pub use self::fixed::{FixedReader, FixedRecords};
pub use self::format::{InputFormat, RecordReader, Splitting};
#[cfg(any(feature = "csv", feature = "json-lines"))]
pub(crate) use self::lines::{LineBlocks, for_each_line};
#[cfg(feature = "csv")]
pub(crate) use self::lines::{lines_splitting, mark_length};
#[cfg(feature = "storage")]
pub(crate) use self::objects::count as count_storage;
pub(crate) use self::opening::{open_input, open_path};
pub(crate) use self::paths::{InputFile, expand, has_unknown_size, local_path};
pub use self::place::InputPlace;
pub(crate) use self::place::quoted;
pub(crate) use self::skip::BAD_RECORDS;
#[cfg(any(
    feature = "avro",
    feature = "csv",
    feature = "json-lines",
    feature = "parquet"
))]
pub(crate) use self::skip::BAD_ROWS;
pub use self::skip::Skip;
#[cfg(any(feature = "csv", feature = "json-lines"))]
pub(crate) use self::source::Source;
pub(crate) use self::splits::{about_empty, check_files, combine, plan_splits};
pub(crate) use self::stamps::{check_unchanged, stamp};
pub use self::text::{
    ByteLineReader, ByteLines, LossyLineReader, LossyLines, TextLineReader, TextLines,
};
pub use self::text_records::{TextRecordReader, TextRecords};
pub use self::whole::{WholeFile, WholeFileReader, WholeFiles};
#[cfg(feature = "csv")]
pub(crate) use self::window::Window;
pub use napreduce_connectors::compression::Compression;
pub(crate) use napreduce_protocol::InputSplit;

/// The position of a reader inside a batch, so that progress is visible in a long batch.
///
/// ```
/// use napreduce::input::ReadPosition;
///
/// // Of a batch of ten records in the first 500 bytes of a split, three are done.
/// let position = ReadPosition::default();
/// position.enter(0..10, 0..500);
/// position.set(3);
/// assert_eq!((position.get(), position.bytes()), (3, 150));
/// ```
pub use napreduce_task::ReadPosition;

/// The bytes of one file that one map task reads.
///
/// ```
/// use napreduce::input::Split;
///
/// let split = Split { path: "log".into(), offset: 100, length: 50, file_length: 400, version: None };
/// assert_eq!(split.end(), 150);
/// assert_eq!(Split::whole("log".as_ref(), 400).length, 400);
/// ```
pub use napreduce_protocol::Split;

pub use crate::words::Words;
