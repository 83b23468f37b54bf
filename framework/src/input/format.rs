//! The seam between formats and the tasks that read with them: what a format says of a file, and what its reader does.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use napreduce_connectors::compression::Compression;
use napreduce_protocol::Split;
use napreduce_task::ReadPosition;
use serde::{Deserialize, Serialize};

use super::check;
use super::error::InputError;

/// How the bytes of input files become records: [`TextLines`](super::TextLines),
/// [`ByteLines`](super::ByteLines), [`FixedRecords`](super::FixedRecords), [`WholeFiles`](super::WholeFiles), or a format of one's own.
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
        check::check(path)
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

/// Where a file may be cut.
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
    /// At any byte; the readers find the boundaries of records.
    Anywhere,
    /// At multiples of so many bytes, of which the file must be a multiple too.
    Multiples(usize),
    /// Nowhere, because decompression begins at the start.
    Compressed(Compression),
    /// Nowhere, because the file is one record.
    Whole,
    /// Nowhere, because a record may look like the middle of another one to whoever has not read
    /// from the start.
    FromStart,
}

impl Splitting {
    /// Why a file at `path` is read by one task however large it is: `data.gz is compressed with gzip and
    /// cannot be split`.
    pub fn refusal(self, path: &Path) -> Option<String> {
        match self {
            Splitting::Anywhere | Splitting::Multiples(_) => None,
            Splitting::Compressed(compression) => {
                Some(format!("{} is compressed with {compression} and cannot be split", path.display()))
            }
            Splitting::Whole => Some(format!("{} is one record and cannot be split", path.display())),
            Splitting::FromStart => {
                Some(format!("{} may have records over several lines and cannot be split", path.display()))
            }
        }
    }
}

/// What becomes of a row that is not of the job's type: `--bad-rows fail|skip|N`. Rows that are left out are
/// counted as `BAD_ROWS`, and the first one is quoted in the log of its task. `--bad-records` is the same for
/// records that the job's own map calls [bad](crate::builder::BadRecord), counted as `BAD_RECORDS`.
///
/// ```
/// use napreduce::input::BadRows;
///
/// assert_eq!("skip".parse(), Ok(BadRows::Skip));
/// assert_eq!("20".parse(), Ok(BadRows::AtMost(20)));
/// assert_eq!(BadRows::default().to_string(), "fail");
/// assert!("some".parse::<BadRows>().is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum BadRows {
    /// The first one fails the job.
    #[default]
    Fail,
    /// They are left out, however many there are.
    Skip,
    /// So many are left out in each map task; one more fails the job.
    AtMost(u64),
}

impl FromStr for BadRows {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "fail" => Ok(BadRows::Fail),
            "skip" => Ok(BadRows::Skip),
            number => number.parse().map(BadRows::AtMost).map_err(|_| {
                format!(
                    "{number:?} is not allowed; allowed: fail, skip, or how many a map task may leave out"
                )
            }),
        }
    }
}

impl fmt::Display for BadRows {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadRows::Fail => formatter.write_str("fail"),
            BadRows::Skip => formatter.write_str("skip"),
            BadRows::AtMost(number) => write!(formatter, "{number}"),
        }
    }
}
