//! The position of the current record, for user code. The reader tracks the offset anyway; lines are counted
//! on demand by reading the file a second time.

use std::cell::RefCell;
use std::fmt;
use std::path::Path;
use std::rc::Rc;

use napreduce_protocol::Split;
use napreduce_task::ReadPosition;

use super::error::InputError;
use super::lines::UTF_8_MARK;
use super::source::Source;

/// Bytes per read while counting newlines.
const COUNTED_BYTES: usize = 64 << 10;
/// Limit of a second read for an error message.
#[cfg(feature = "streaming")]
const COUNTED_BYTES_MAX: u64 = 1 << 30;

/// Characters of a record that are quoted.
const QUOTED_CHARS: usize = 120;
/// Bytes that have more characters than that.
const QUOTED_BYTES: usize = 4 * (QUOTED_CHARS + 1);

/// The position of the current record of a map, returned by `out.input()`. It prints as `logs/a.txt line 3`,
/// or with the byte if the line is not known.
///
/// It and its clones follow the map from record to record: use it while the record is mapped.
///
/// ```
/// use napreduce::Job;
/// use napreduce::testing::JobTest;
///
/// let places = || {
///     Job::text().map_only(|line: &str, out| {
///         let place = out.input();
///         assert!(place.path().ends_with("input-0000"));
///         out.emit((place.offset(), place.line()), line);
///     })
/// };
/// assert_eq!(JobTest::new(places).input("to be\nor not\n").run().text(), "0\t1\tto be\n6\t2\tor not\n");
/// ```
#[derive(Clone)]
pub struct InputPlace {
    file: Rc<PlaceInFile>,
}

struct PlaceInFile {
    split: Split,
    /// The byte at which the record begins, if the format knows it.
    position: Option<ReadPosition>,
    memory: usize,
    lines: RefCell<LineCount>,
}

impl InputPlace {
    pub(crate) fn new(split: &Split, position: Option<ReadPosition>, memory: usize) -> InputPlace {
        let lines = RefCell::new(LineCount::default());
        InputPlace {
            file: Rc::new(PlaceInFile {
                split: split.clone(),
                position,
                memory,
                lines,
            }),
        }
    }

    /// Returns the path of the file, beginning as the INPUT argument did; absolute on a cluster.
    pub fn path(&self) -> &Path {
        &self.file.split.path
    }

    /// Returns the byte of the decompressed file at which the record begins, for lines, fixed records, csv
    /// and JSON lines. `None` for formats whose records are in blocks.
    ///
    /// In a compressed file that several tasks read, it counts from the start of the split.
    pub fn offset(&self) -> Option<u64> {
        self.file.position.as_ref().map(ReadPosition::get)
    }

    /// Returns the line in which the record begins, from 1. `None` after the first split of a file that
    /// several tasks read, and if there is no [`offset`](InputPlace::offset).
    ///
    /// Lines cost nothing unless requested. Each call counts newlines in a second read of the file, which
    /// continues where the last call ended. A `--split-size` above the size of the file makes one split of
    /// it.
    ///
    /// ```
    /// use napreduce::Job;
    /// use napreduce::testing::JobTest;
    ///
    /// let lines = || Job::text().map_only(|_: &str, out| out.emit(out.input().line(), ()));
    /// let test = JobTest::new(lines).input("a\nb\nc\nd\n");
    /// assert_eq!(test.run().text(), "1\n2\n3\n4\n");
    /// assert_eq!(test.split_size(4).run().text(), "1\n2\n\n\n");
    /// ```
    pub fn line(&self) -> Option<u64> {
        self.line_of(self.offset()?)
    }

    /// Returns the line of a byte.
    pub(crate) fn line_of(&self, offset: u64) -> Option<u64> {
        if self.file.split.offset > 0 {
            return None;
        }
        // A file that cannot be read a second time has no line numbers; this is not an error.
        self.file
            .lines
            .borrow_mut()
            .count_to(offset, &self.file)
            .ok()
            .map(|newlines| newlines + 1)
    }
}

#[cfg(feature = "streaming")]
impl InputPlace {
    /// Returns the parts of a position that can be sent to another thread.
    pub(crate) fn of_split(&self) -> (Split, usize) {
        (self.file.split.clone(), self.file.memory)
    }

    /// Creates a position without a reader. To count its lines, the file is read from its start.
    pub(crate) fn anywhere(split: &Split, offset: u64, memory: usize) -> InputPlace {
        let position = ReadPosition::default();
        position.set(offset);
        let from_start = match offset {
            ..=COUNTED_BYTES_MAX => Split {
                offset: 0,
                ..split.clone()
            },
            _ => split.clone(),
        };
        InputPlace::new(&from_start, Some(position), memory)
    }
}

impl InputPlace {
    /// Returns the line or, if that is not known, the byte: `line 3`. `None` if there is no
    /// [`offset`](InputPlace::offset).
    pub(crate) fn in_file(&self) -> Option<String> {
        let offset = self.offset()?;
        Some(
            self.line()
                .map_or_else(|| format!("byte {offset}"), |line| format!("line {line}")),
        )
    }

    /// Returns the position and the beginning of the record for the error of a map, as in `data/a.txt line 3;
    /// the record begins with "x"`. `None` if there is no [`offset`](InputPlace::offset).
    pub(crate) fn describe(&self) -> Option<String> {
        self.in_file()?;
        let quote = self.quote().map_or_else(String::new, |quote| {
            format!("; the record begins with {quote}")
        });
        Some(format!("{self}{quote}"))
    }

    /// Returns the first line of the record, quoted and shortened; `None` if it cannot be read again.
    pub(crate) fn quote(&self) -> Option<String> {
        let offset = self.offset()?;
        let mut source = Source::open(&self.file.split, offset, self.file.memory).ok()?;
        let mut line = vec![0; QUOTED_BYTES + 1];
        let mut length = 0;
        while length < line.len() {
            match source.read(&mut line[length..]).ok()? {
                0 => break,
                read => length += read,
            }
        }
        line.truncate(length);
        let end = memchr::memchr(b'\n', &line).unwrap_or(length);
        let line = line[..end].strip_suffix(b"\r").unwrap_or(&line[..end]);
        Some(quoted(if offset == 0 {
            line.strip_prefix(UTF_8_MARK).unwrap_or(line)
        } else {
            line
        }))
    }
}

/// Returns the beginning of a record as text on one line.
pub(crate) fn quoted(record: &[u8]) -> String {
    let text = String::from_utf8_lossy(&record[..record.len().min(QUOTED_BYTES)]);
    match text.char_indices().nth(QUOTED_CHARS) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}

impl fmt::Display for InputPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.path().display())?;
        self.in_file()
            .map_or(Ok(()), |place| write!(formatter, " {place}"))
    }
}

impl fmt::Debug for InputPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// The progress of counting newlines.
#[derive(Default)]
struct LineCount {
    source: Option<Source>,
    /// Read but not yet counted.
    ahead: Vec<u8>,
    taken: usize,
    offset: u64,
    newlines: u64,
}

impl LineCount {
    /// Returns the number of newlines before `offset`.
    fn count_to(&mut self, offset: u64, file: &PlaceInFile) -> Result<u64, InputError> {
        if offset < self.offset {
            *self = LineCount::default();
        }
        while self.offset < offset {
            if self.taken == self.ahead.len() && !self.read_on(file)? {
                break;
            }
            let rest = &self.ahead[self.taken..];
            let wanted = usize::try_from(offset - self.offset)
                .map_or(rest.len(), |left| left.min(rest.len()));
            self.newlines += memchr::memchr_iter(b'\n', &rest[..wanted]).count() as u64;
            self.taken += wanted;
            self.offset += wanted as u64;
        }
        Ok(self.newlines)
    }

    /// Reads more; returns whether there was any.
    fn read_on(&mut self, file: &PlaceInFile) -> Result<bool, InputError> {
        let source = match &mut self.source {
            Some(source) => source,
            none => none.insert(Source::open(&file.split, 0, file.memory)?),
        };
        self.ahead.resize(COUNTED_BYTES, 0);
        let read = source.read(&mut self.ahead)?;
        self.ahead.truncate(read);
        self.taken = 0;
        Ok(read > 0)
    }
}
