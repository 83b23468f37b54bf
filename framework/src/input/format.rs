//! The traits of input formats and their readers.

use std::path::Path;

use napreduce_connectors::compression::Compression;
use napreduce_protocol::Split;
use napreduce_task::ReadPosition;

use super::check;
use super::error::InputError;
use super::skip::Skip;

/// An input format: [`TextLines`](super::TextLines), [`ByteLines`](super::ByteLines),
/// [`FixedRecords`](super::FixedRecords), [`WholeFiles`](super::WholeFiles), or a custom one.
///
/// A record belongs to the split that holds its first byte, so each record is read once however a file is
/// cut.
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
    message = "`{Self}` is not an input format",
    label = "not an input format",
    note = "use a format of `napreduce::input`, such as `TextLines`; the input paths are given when the job runs"
)]
pub trait InputFormat: Sized + Send + Sync + 'static {
    /// One record; borrows from the reader's buffer.
    type Record<'a>;

    /// The reader of the records of one split.
    type Reader: RecordReader<Self>;

    /// Returns the positions at which files with this name may be split.
    fn splitting(&self, path: &Path) -> Splitting;

    /// Returns whether several tasks can read files with this name.
    fn splittable(&self, path: &Path) -> bool {
        self.splitting(path).refusal(path).is_none()
    }

    /// Rejects a file whose bytes would be misread; called for each file before the job begins.
    ///
    /// By default, rejects files in an unsupported compression (`.7z`, `.br` and others, by name and by their
    /// first bytes; `.gz`, `.zst`, `.bz2`, `.xz`, `.lz4` and `.snappy` without the features that read them),
    /// and compressed files whose extension does not match.
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
        check::check(path)
    }

    /// Opens a reader of the records of `split` from `offset` on: the start of the split, or a value of
    /// [`RecordReader::offset`] after a batch. For one huge record the reader may grow a buffer up to
    /// `memory` bytes.
    fn open_at(
        &self,
        split: &Split,
        offset: u64,
        memory: usize,
    ) -> Result<Self::Reader, InputError>;

    /// Sets what happens to rows that the format cannot read (`--bad-input`); ignored by formats without rows.
    ///
    /// ```
    /// use napreduce::input::{InputFormat, Skip, TextLines};
    ///
    /// TextLines.on_bad_input(Skip::All);
    /// ```
    fn on_bad_input(&mut self, skip: Skip) {
        let _ = skip;
    }

    /// Opens a reader of all records of `split`.
    fn open(&self, split: &Split, memory: usize) -> Result<Self::Reader, InputError> {
        self.open_at(split, split.offset, memory)
    }
}

/// Reads the records of one split in batches of one buffer. After an error it cannot be used further.
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
    /// Passes some records to `each`, in order, and returns whether there may be more. Stops at the first
    /// error.
    fn read_batch<E: From<InputError>>(
        &mut self,
        each: &mut impl FnMut(F::Record<'_>) -> Result<(), E>,
    ) -> Result<bool, E>;

    /// Returns the offset of the current record in decompressed bytes: inside `each` and after its failure,
    /// the record it was given; after a batch, the next record, from which a reader opened at this offset
    /// continues.
    fn offset(&self) -> u64;

    /// Returns how many records a reader opened at [`offset`](RecordReader::offset) returns before the
    /// current one: not 0 if records share an offset, such as those of a block.
    fn records_before(&self) -> u64 {
        0
    }

    /// Returns the same position as text for error messages.
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

    /// Returns how many bytes of the split are done, in compressed bytes for a compressed file.
    fn consumed(&self) -> u64;

    /// Returns a shared position that the reader updates for each record, so that progress is visible inside
    /// a batch; called once. A reader that wraps another returns that one's. Otherwise progress is reported
    /// after each batch.
    fn position(&self) -> Option<ReadPosition> {
        None
    }

    /// Returns the shared position if it counts decompressed bytes of the file and so equals the
    /// [`offset`](RecordReader::offset) of the current record. User code can then get the record's position
    /// and line. A reader that wraps another returns that one's.
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

/// The positions at which a file may be split.
///
/// ```
/// use std::path::Path;
///
/// use napreduce::input::{InputFormat, Splitting, TextLines};
///
/// let path = Path::new("log.gz");
/// let splitting = TextLines.splitting(path);
/// assert_eq!(splitting.refusal(path).as_deref(), Some("log.gz is compressed with gzip and cannot be split"));
/// assert!(!TextLines.splittable(path));
/// assert_eq!(TextLines.splitting(Path::new("log")), Splitting::Anywhere);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Splitting {
    /// At any byte; the readers find the record boundaries.
    Anywhere,
    /// At multiples of this many bytes; the file size must be a multiple too.
    Multiples(usize),
    /// Not at all: decompression must begin at the start.
    Compressed(Compression),
    /// Not at all: the file is one record.
    Whole,
    /// Not at all: record boundaries are only known when reading from the start.
    FromStart,
}

impl Splitting {
    /// Returns why one task reads a whole file at `path`, if so: `data.gz is compressed with gzip and cannot
    /// be split`.
    pub fn refusal(self, path: &Path) -> Option<String> {
        match self {
            Splitting::Anywhere | Splitting::Multiples(_) => None,
            Splitting::Compressed(compression) => Some(format!(
                "{} is compressed with {compression} and cannot be split",
                path.display()
            )),
            Splitting::Whole => Some(format!(
                "{} is one record and cannot be split",
                path.display()
            )),
            Splitting::FromStart => Some(format!(
                "{} may have records over several lines and cannot be split",
                path.display()
            )),
        }
    }
}
