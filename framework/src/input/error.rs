//! Errors of inputs.

use std::io;
use std::path::{Path, PathBuf};

use napreduce_connectors::bytes::ReadError;
use napreduce_connectors::compression::Compression;
#[cfg(feature = "storage")]
use napreduce_connectors::stores::StorageError;
use napreduce_protocol::{ByteSize, FailedRecord};

/// The error for input that cannot be found, read or parsed.
///
/// ```
/// use napreduce::input::{InputError, InputFormat, Split, TextLines};
///
/// let nothing = TextLines.open(&Split::whole("no-such-file".as_ref(), 1), 1 << 20);
/// assert!(matches!(nothing, Err(InputError::Unreadable { path, .. }) if path.ends_with("no-such-file")));
/// ```
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// An INPUT argument matches nothing.
    #[error("input {} does not exist", path.display())]
    Missing {
        /// As it was given.
        path: PathBuf,
    },
    /// A glob that no file matches.
    #[error("input {pattern} matches no file")]
    NoMatch {
        /// As it was given.
        pattern: String,
    },
    /// An invalid glob.
    #[error("input {pattern} is not a valid pattern: {reason}")]
    BadPattern {
        /// As it was given.
        pattern: String,
        /// The problem and its position.
        reason: String,
    },
    /// A directory with subdirectories.
    #[error(
        "input {0} contains the directory {1}; pass --recursive to read its files too, or name \
         files by a glob such as '{0}/*.*', or '{0}/**/*.*' at any depth",
        directory.display(),
        nested.display()
    )]
    Nested {
        /// The directory.
        directory: PathBuf,
        /// One of the subdirectories.
        nested: PathBuf,
    },
    /// A file in a known but unsupported compression.
    #[error(
        "{} is compressed with {compression}, which is not supported; decompress it first: {undo} {}{}",
        path.display(),
        path.display(),
        with_feature(*feature)
    )]
    NotDecompressed {
        /// The file.
        path: PathBuf,
        /// How it is compressed.
        compression: &'static str,
        /// The command that decompresses it.
        undo: &'static str,
        /// The feature of this crate that decompresses it.
        feature: Option<&'static str>,
    },
    /// A compressed file whose extension does not match its content.
    #[error(
        "{} contains {compression} data, but its name does not end in .{extension}; rename it, so that it is decompressed while \
         it is read",
        path.display()
    )]
    Misnamed {
        /// The file.
        path: PathBuf,
        /// The compression of its first bytes.
        compression: Compression,
        /// The expected extension.
        extension: &'static str,
    },
    /// A container file in a job that reads text.
    #[error(
        "{} is {format}, but this job reads another format; use {method} (feature {feature} of napreduce)",
        path.display()
    )]
    OtherFormat {
        /// The file.
        path: PathBuf,
        /// The kind of file.
        format: &'static str,
        /// The function that begins a job for such files.
        method: &'static str,
        /// The feature of this crate that provides the function.
        feature: &'static str,
    },
    /// A file of typed records in a job that reads another format.
    #[error("{} is a file of typed records, but this job reads another format; use Job::records", path.display())]
    TypedRecords {
        /// The file.
        path: PathBuf,
    },
    /// A file of typed records of other types.
    #[error(
        "{} holds records of {found}, but this job reads {expected}; read it as the types that wrote it",
        path.display()
    )]
    OtherRecords {
        /// The file.
        path: PathBuf,
        /// The types of key and value in the head of the file.
        found: String,
        /// Those of the job.
        expected: String,
    },
    /// A socket, a terminal or another special file.
    #[error("input {} is neither a file nor a directory; write its data to a file and name that", path.display())]
    NotAFile {
        /// As given or found.
        path: PathBuf,
    },
    /// A file whose size is unknown, such as those of /proc.
    #[error("input {} has no known size, as files of /proc and /sys; write its data to a file and name that", path.display())]
    UnknownSize {
        /// As given or found.
        path: PathBuf,
    },
    /// The system failed to open, list or read it.
    #[error("cannot read {}: {}", path.display(), system_reason(error))]
    Unreadable {
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// An object in a store cannot be read.
    #[error("{reason}")]
    Stored {
        /// The object, the problem, and what to do.
        reason: String,
        /// Whether a retry may succeed, later or elsewhere.
        is_passing: bool,
    },
    /// An input in a store that this program is built without.
    #[error(
        "input {} is in {store}, which this program was built without; build it with the feature {feature} of napreduce, \
         or copy it to a folder first",
        path.display()
    )]
    NoStorage {
        /// As it was given.
        path: PathBuf,
        /// The common name of the service.
        store: String,
        /// The feature of this crate that reads it.
        feature: &'static str,
    },
    /// The file was truncated after its splits were planned.
    #[error(
        "{} ends at byte {found} but had {planned} bytes when the job began; run the job again",
        path.display()
    )]
    Shortened {
        /// The file.
        path: PathBuf,
        /// Its size when the splits were planned.
        planned: u64,
        /// Where it ends now.
        found: u64,
    },
    /// The file was modified or replaced after its splits were planned.
    #[error(
        "{} was {how} after the job began: attempts would read different bytes; run the job again on unchanging files",
        path.display()
    )]
    Changed {
        /// The file.
        path: PathBuf,
        /// The kind of change.
        how: &'static str,
    },
    /// A text job met bytes that are not text.
    #[error(
        "{} has invalid UTF-8 at byte {offset}{}; convert the file, read lines of bytes (Job::bytes()), or replace invalid \
         bytes (Job::lossy_text())",
        path.display(),
        line.map_or_else(String::new, |line| format!(", in line {line}"))
    )]
    NotText {
        /// The file.
        path: PathBuf,
        /// Offset of the first invalid byte in the decompressed file.
        offset: u64,
        /// Its line, from 1, if it is known.
        line: Option<u64>,
    },
    /// A text job met a file that begins with the byte order mark of another encoding.
    #[error(
        "{0} is {encoding} text by its byte order mark, but only UTF-8 is supported; convert it first: iconv -f {encoding} \
         -t UTF-8 {0}",
        path.display()
    )]
    OtherEncoding {
        /// The file.
        path: PathBuf,
        /// The encoding, as iconv calls it.
        encoding: &'static str,
    },
    /// A line that does not fit into the memory of the task.
    #[error(
        "line at byte {offset} of {} is longer than {}; raise --task-memory",
        path.display(),
        ByteSize::new(*limit)
    )]
    LineTooLong {
        /// The file.
        path: PathBuf,
        /// Where the line begins, in the decompressed file.
        offset: u64,
        /// Size limit of a line in bytes.
        limit: u64,
    },
    /// A whole-file record that does not fit into the memory of the task.
    #[error("{} is longer than {}; raise --task-memory", path.display(), ByteSize::new(*limit))]
    FileTooLong {
        /// The file.
        path: PathBuf,
        /// Size limit of a file in bytes.
        limit: u64,
    },
    /// A file of records of one length that ends within a record.
    #[error("{} has {size} bytes, which is not a multiple of the record length {length}", path.display())]
    PartialRecord {
        /// The file.
        path: PathBuf,
        /// Its size in bytes, decompressed.
        size: u64,
        /// Bytes in a record.
        length: usize,
    },
    /// Records that do not fit into the memory of the task.
    #[error("a record of {length} bytes is longer than {}; raise --task-memory", ByteSize::new(*limit))]
    RecordTooLong {
        /// Bytes in a record.
        length: usize,
        /// Size limit of a record in bytes.
        limit: u64,
    },
    /// Records of length zero.
    #[error("records of fixed length need a length of at least 1 byte")]
    NoRecordLength,
    /// A compressed file whose decompression needs more memory than the task has.
    #[error("{} needs {} to be decompressed; raise --task-memory", path.display(), ByteSize::new(*window))]
    WindowTooLarge {
        /// The file.
        path: PathBuf,
        /// Bytes that the decoder must keep.
        window: u64,
    },
    /// A file that does not contain typed records, or a damaged one, or one of other types.
    #[error("{} cannot be read as typed records at byte {offset}: {reason}", path.display())]
    BadRecords {
        /// The file.
        path: PathBuf,
        /// Where the block begins, in bytes.
        offset: u64,
        /// The problem.
        reason: String,
    },
    /// A row that is not of the job's type, or one beyond the limit of bad rows.
    #[error(
        "{} has {} at {place}: {reason}; the row is {row}; {}",
        path.display(),
        which("row", *most),
        remedy("row", *most)
    )]
    BadRow {
        /// The file.
        path: PathBuf,
        /// Its position in the file: line or byte.
        place: String,
        /// The problem.
        reason: String,
        /// The quoted row.
        row: String,
        /// The limit of bad rows, if any.
        most: Option<u64>,
    },
    /// A file that does not contain rows, or a damaged one.
    #[error("{} cannot be read as rows at byte {offset}: {reason}", path.display())]
    BadTable {
        /// The file.
        path: PathBuf,
        /// Position of the problem in bytes.
        offset: u64,
        /// The problem.
        reason: String,
    },
    /// One record of a block of typed records is larger than the memory.
    #[error(
        "a record in the block at byte {offset} of {} is longer than {}, the memory of the task; raise --task-memory",
        path.display(),
        ByteSize::new(*limit)
    )]
    BlockRecordTooLong {
        /// The file.
        path: PathBuf,
        /// Where the block begins, in bytes.
        offset: u64,
        /// The memory of the task.
        limit: u64,
    },
    /// A file that a [format of your own](crate::input::InputFormat) cannot read.
    ///
    /// ```
    /// use napreduce::input::InputError;
    ///
    /// let error = InputError::Custom {
    ///     path: "points.bin".into(),
    ///     position: "record 7".to_owned(),
    ///     reason: "a coordinate is not finite".to_owned(),
    /// };
    /// assert_eq!(error.to_string(), "points.bin cannot be read at record 7: a coordinate is not finite");
    /// ```
    #[error("{} cannot be read at {position}: {reason}", path.display())]
    Custom {
        /// The file.
        path: PathBuf,
        /// Position of the problem, such as `record 7` or `byte 120`.
        position: String,
        /// The problem.
        reason: String,
    },
    /// A compressed file that cannot be decompressed.
    #[error("{} is damaged: {compression} data at byte {offset} {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The compression of its name.
        compression: Compression,
        /// Position of the problem, in compressed bytes.
        offset: u64,
        /// The problem.
        reason: String,
    },
}

impl InputError {
    /// Converts an error of the system or of a store.
    pub(crate) fn unreadable(path: &Path, error: io::Error) -> Self {
        #[cfg(feature = "storage")]
        if let Some(error) = error
            .get_ref()
            .and_then(|error| error.downcast_ref::<StorageError>())
        {
            return InputError::of_object(path, error);
        }
        InputError::Unreadable {
            path: path.to_owned(),
            error,
        }
    }

    #[cfg(feature = "storage")]
    fn of_object(path: &Path, error: &StorageError) -> Self {
        let path = path.to_owned();
        match error {
            StorageError::Missing { .. } => InputError::Missing { path },
            StorageError::Changed { .. } => InputError::Changed {
                path,
                how: "replaced or removed",
            },
            other => InputError::Stored {
                reason: other.to_string(),
                is_passing: other.is_passing(),
            },
        }
    }

    /// Returns the record that is the problem, if there is one.
    pub(crate) fn record(&self) -> Option<FailedRecord> {
        let at_byte = |path: &Path, offset: &u64| {
            FailedRecord::new(path.display().to_string(), format!("byte {offset}"), None)
        };
        match self {
            InputError::BadRow {
                path, place, row, ..
            } => Some(FailedRecord::new(
                path.display().to_string(),
                place,
                Some(row),
            )),
            InputError::Custom { path, position, .. } => Some(FailedRecord::new(
                path.display().to_string(),
                position,
                None,
            )),
            InputError::NotText { path, offset, .. }
            | InputError::LineTooLong { path, offset, .. }
            | InputError::BadRecords { path, offset, .. }
            | InputError::BadTable { path, offset, .. }
            | InputError::BlockRecordTooLong { path, offset, .. }
            | InputError::Damaged { path, offset, .. } => Some(at_byte(path, offset)),
            _ => None,
        }
    }

    /// Adds the name of the file to an error of its bytes; `damaged` makes the error for invalid bytes.
    #[cold]
    pub(crate) fn of_bytes(
        path: &Path,
        error: ReadError,
        damaged: impl FnOnce(PathBuf, u64, String) -> Self,
    ) -> Self {
        let owned = path.to_owned();
        match error {
            ReadError::Unreadable(error) => InputError::unreadable(path, error),
            ReadError::Shortened { planned, found } => InputError::Shortened {
                path: owned,
                planned,
                found,
            },
            ReadError::WindowTooLarge { window } => InputError::WindowTooLarge {
                path: owned,
                window,
            },
            ReadError::TooLarge { offset, what } => damaged(
                owned,
                offset,
                format!("{what} is larger than the memory; raise --task-memory"),
            ),
            ReadError::Damaged { offset, reason } => damaged(owned, offset, reason),
        }
    }

    /// Adds the line of invalid text; `of_byte` returns the line of a byte, if it is known.
    pub(crate) fn in_line(self, of_byte: impl FnOnce(u64) -> Option<u64>) -> Self {
        match self {
            InputError::NotText {
                path,
                offset,
                line: None,
            } => InputError::NotText {
                path,
                offset,
                line: of_byte(offset),
            },
            other => other,
        }
    }

    /// Converts a failed read at `at`, in a file of `planned` bytes.
    pub(crate) fn of_read(path: &Path, planned: u64, at: u64, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => InputError::Shortened {
                path: path.to_owned(),
                planned,
                found: at,
            },
            _ => InputError::unreadable(path, error),
        }
    }
}

fn with_feature(feature: Option<&str>) -> String {
    feature.map_or(String::new(), |name| {
        format!("; or build this program with the feature {name} of napreduce")
    })
}

/// Describes the bad `record` or `row` that fails a job with the limit `most`.
pub(crate) fn which(record: &str, most: Option<u64>) -> String {
    match most {
        None => format!("a bad {record}"),
        Some(most) => format!("too many bad {record}s (limit {most}), the last one"),
    }
}

/// Returns the remedy in an error message.
pub(crate) fn remedy(record: &str, most: Option<u64>) -> String {
    match most {
        None => format!("fix the {record}, or pass --bad-input skip to skip bad {record}s"),
        Some(_) => format!("fix the {record}s, or raise --bad-input"),
    }
}

/// Returns the message of the system in lower case without its number: `permission denied`.
fn system_reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_lowercase().chain(letters).collect())
        .unwrap_or_default()
}
