//! What a job reads.
//!
//! Owns input formats and their readers, the list of files that INPUT arguments mean, and their cutting into
//! splits. Does not own what happens to a record, nor which task reads which split.
//!
//! ```
//! use napreduce::Job;
//! use napreduce::input::TextLines;
//! use napreduce::testing::JobTest;
//!
//! let job = || Job::input(TextLines).map_only(|line: &str, out| out.emit(line.len(), ()));
//! assert_eq!(JobTest::new(job).input("to be\n").run().text(), "5\n");
//! ```

mod bad_rows;
mod compression;
mod error;
mod fixed;
mod lines;
mod mark;
mod newlines;
#[cfg(feature = "storage")]
mod objects;
mod opening;
mod paths;
mod place;
mod source;
mod splits;
mod stamps;
mod text;
mod text_records;
mod whole;
mod window;

use std::path::Path;

pub use self::bad_rows::BadRows;
pub(crate) use self::compression::about_empty;
#[cfg(feature = "csv")]
pub(crate) use self::compression::lines_splitting;
pub use self::error::InputError;
pub(crate) use self::error::{remedy, which};
pub use self::fixed::{FixedReader, FixedRecords};
#[cfg(any(feature = "csv", feature = "json-lines"))]
pub(crate) use self::lines::{LineBlocks, for_each_line};
#[cfg(feature = "csv")]
pub(crate) use self::mark::mark_length;
#[cfg(feature = "storage")]
pub(crate) use self::objects::count as count_storage;
pub(crate) use self::opening::open_input;
#[cfg(any(feature = "avro", feature = "parquet", feature = "sequence-file"))]
pub(crate) use self::opening::{open_path, open_watched};
pub(crate) use self::paths::{InputFile, expand, local_path};
pub use self::place::InputPlace;
#[cfg(any(feature = "avro", feature = "csv", feature = "json-lines", feature = "parquet"))]
pub(crate) use self::place::quoted;
#[cfg(any(feature = "csv", feature = "json-lines"))]
pub(crate) use self::source::Source;
pub use self::splits::Splitting;
pub(crate) use self::splits::{combine, plan_splits};
pub(crate) use self::stamps::{check_unchanged, stamp};
pub use self::text::{ByteLineReader, ByteLines, LossyLineReader, LossyLines, TextLineReader, TextLines};
pub use self::text_records::{TextRecordReader, TextRecords};
pub use self::whole::{WholeFile, WholeFileReader, WholeFiles};
#[cfg(feature = "csv")]
pub(crate) use self::window::Window;
pub use napreduce_connectors::compression::Compression;
pub(crate) use napreduce_live::InputSplit;

/// Objects in stores that are looked at beside each other when a job is planned.
const CHECKS_AT_ONCE: usize = 16;

/// Where a reader stands inside a batch: what of it is done, so that progress is told while a batch takes
/// long.
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
pub use napreduce_live::ReadPosition;

/// The bytes of one file that one map task reads.
///
/// ```
/// use napreduce::input::Split;
///
/// let split = Split { path: "log".into(), offset: 100, length: 50, file_length: 400, version: None };
/// assert_eq!(split.end(), 150);
/// assert_eq!(Split::whole("log".as_ref(), 400).length, 400);
/// ```
pub use napreduce_live::Split;

pub use crate::words::Words;

/// How the bytes of input files become records: [`TextLines`], [`ByteLines`], [`FixedRecords`],
/// [`WholeFiles`], or a format of one's own.
///
/// A record belongs to the split that holds its first byte, so that every way to cut a file gives each record
/// once.
///
/// ```
/// use std::path::Path;
///
/// use napreduce::input::{InputError, InputFormat, ReadPosition, RecordReader, Split, Splitting, TextLineReader, TextLines};
///
/// /// Lines, except comments.
/// struct Uncommented;
///
/// struct UncommentedReader(TextLineReader);
///
/// impl InputFormat for Uncommented {
///     type Record<'a> = &'a str;
///     type Reader = UncommentedReader;
///
///     fn splitting(&self, path: &Path) -> Splitting {
///         TextLines.splitting(path)
///     }
///
///     fn open_at(&self, split: &Split, offset: u64, memory: usize) -> Result<UncommentedReader, InputError> {
///         TextLines.open_at(split, offset, memory).map(UncommentedReader)
///     }
/// }
///
/// impl RecordReader<Uncommented> for UncommentedReader {
///     fn read_batch<E: From<InputError>>(
///         &mut self,
///         each: &mut impl FnMut(&str) -> Result<(), E>,
///     ) -> Result<bool, E> {
///         self.0.read_batch(&mut |line: &str| if line.starts_with('#') { Ok(()) } else { each(line) })
///     }
///
///     fn offset(&self) -> u64 {
///         self.0.offset()
///     }
///
///     fn records_before(&self) -> u64 {
///         self.0.records_before()
///     }
///
///     fn consumed(&self) -> u64 {
///         self.0.consumed()
///     }
///
///     fn position(&self) -> Option<ReadPosition> {
///         self.0.position()
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no input format",
    label = "not an input format",
    note = "take one of `napreduce::input`, such as `TextLines`; which files are read is said when the job runs"
)]
pub trait InputFormat: Sized + Send + Sync + 'static {
    /// One record; borrows from the reader's buffer.
    type Record<'a>;

    /// What reads the records of one split.
    type Reader: RecordReader<Self>;

    /// Where files with this name may be cut.
    fn splitting(&self, path: &Path) -> Splitting;

    /// Whether files with this name can be read by several tasks.
    fn splittable(&self, path: &Path) -> bool {
        self.splitting(path).refusal(path).is_none()
    }

    /// Refuses a file that would be read as other bytes than are meant; asked of each file before
    /// the job begins.
    ///
    /// Unless said otherwise, such are files in a compression that is not undone while reading (`.7z`, `.br`
    /// and others, by name and by their first bytes; `.gz`, `.zst`, `.bz2`, `.xz`, `.lz4` and `.snappy`
    /// without the features that read them), and those in one that is, whose names do not say so.
    ///
    /// ```
    /// use napreduce::input::{InputError, InputFormat, TextLines};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("data.7z");
    /// std::fs::write(&path, b"7z...")?;
    /// assert!(matches!(TextLines.check(&path), Err(InputError::NotDecompressed { compression: "7z", .. })));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    fn check(&self, path: &Path) -> Result<(), InputError> {
        compression::check(path)
    }

    /// A reader of the records of `split` from `offset` on, which is where the split begins or what
    /// [`RecordReader::offset`] said after a batch. For one huge record the reader may grow a buffer up to
    /// `memory` bytes.
    fn open_at(&self, split: &Split, offset: u64, memory: usize) -> Result<Self::Reader, InputError>;

    /// Takes over what is to become of bad rows (`--bad-rows`); of no concern to formats that have none.
    ///
    /// ```
    /// use napreduce::input::{BadRows, InputFormat, TextLines};
    ///
    /// TextLines.take_bad_rows(BadRows::Skip);
    /// ```
    fn take_bad_rows(&mut self, bad_rows: BadRows) {
        let _ = bad_rows;
    }

    /// A reader of all records of `split`.
    fn open(&self, split: &Split, memory: usize) -> Result<Self::Reader, InputError> {
        self.open_at(split, split.offset, memory)
    }
}

/// Asks a format about each file; about objects in stores, which take their time to answer, several at once.
pub(crate) fn check_files<F: InputFormat>(files: &[InputFile], format: &F) -> Result<(), InputError> {
    let check = |files: &[InputFile]| files.iter().try_for_each(|file| format.check(&file.path));
    if files.iter().all(|file| file.version.is_none()) {
        return check(files);
    }
    std::thread::scope(|scope| {
        let share = files.len().div_ceil(CHECKS_AT_ONCE).max(1);
        let begun: Vec<_> = files.chunks(share).map(|files| scope.spawn(move || check(files))).collect();
        // The first in the order of the files is what is said.
        begun
            .into_iter()
            .try_for_each(|check| check.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Reads the records of one split, one buffer-full at a time. After an error nothing more can be read.
///
/// ```
/// use napreduce::input::{InputError, InputFormat, RecordReader, Split, TextLines};
///
/// let path = std::env::temp_dir().join(format!("napreduce-doc-lines-{}", std::process::id()));
/// std::fs::write(&path, "one\ntwo\n")?;
///
/// let mut reader = TextLines.open(&Split::whole(&path, 8), 1 << 20)?;
/// let mut lines = Vec::new();
/// while reader.read_batch(&mut |line: &str| -> Result<(), InputError> {
///     lines.push(line.to_owned());
///     Ok(())
/// })? {}
/// assert_eq!(lines, ["one", "two"]);
/// std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait RecordReader<F: InputFormat> {
    /// Hands some records to `each`, in order, and says whether there may be more. Stops at the first error.
    fn read_batch<E: From<InputError>>(
        &mut self,
        each: &mut impl FnMut(F::Record<'_>) -> Result<(), E>,
    ) -> Result<bool, E>;

    /// Where in the file the current record starts: inside `each`, and after it failed, the record it was
    /// given; after a batch, the record with which a reader opened at this offset goes on. Counted in
    /// decompressed bytes.
    fn offset(&self) -> u64;

    /// How many records a reader opened at [`offset`](RecordReader::offset) gives before the current one: not
    /// 0 where records share an offset, as those of a block do.
    fn records_before(&self) -> u64 {
        0
    }

    /// The same place for people, in the message of an error.
    ///
    /// ```
    /// use napreduce::input::{InputFormat, RecordReader, Split, TextLines};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("input");
    /// # std::fs::write(&path, b"one\ntwo")?;
    /// let reader = TextLines.open(&Split::whole(&path, 7), 1 << 20)?;
    /// assert_eq!(reader.place(), "byte 0");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn place(&self) -> String {
        format!("byte {}", self.offset())
    }

    /// Bytes of the split that are done; of a compressed file, compressed bytes.
    fn consumed(&self) -> u64;

    /// Where the reader stands, kept up to date for each record, so that progress is seen in the middle of a
    /// batch; asked for once. A reader that wraps another passes on that one's. Without it progress is told
    /// after each batch.
    fn position(&self) -> Option<ReadPosition> {
        None
    }

    /// The same if it counts bytes of the file, decompressed, so that it is the
    /// [`offset`](RecordReader::offset) of the current record: then user code can ask for the record's place
    /// and line. A reader that wraps another passes on that one's.
    ///
    /// ```
    /// use napreduce::input::{FixedRecords, InputFormat, RecordReader, Split};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("input");
    /// # std::fs::write(&path, b"onetwo")?;
    /// let reader = FixedRecords { length: 3 }.open(&Split { offset: 3, length: 3, ..Split::whole(&path, 6) }, 1 << 20)?;
    /// assert_eq!(reader.byte_position().map(|position| position.get()), Some(3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn byte_position(&self) -> Option<ReadPosition> {
        None
    }
}
