//! Text records other than lines: separated by delimiters, beginning with marked lines, or paragraphs. The
//! boundaries are the same for a reader that begins in the middle of a file.

use std::path::Path;

use memchr::memmem::Finder;
use napreduce_connectors::compression::Compression;
use napreduce_protocol::Split;
use napreduce_task::ReadPosition;

use super::error::InputError;
use super::format::{InputFormat, RecordReader, Splitting};
use super::lines::{MARK_BYTES, mark_length};
use super::source::Source;
use super::window::Window;

/// Bytes per read when searching backwards for blank lines.
const LOOK_BACK_BYTES: usize = 4 << 10;

/// Records of UTF-8 text over any number of lines, as `&str`. A record may be as long as the task's memory.
/// Files are cut between records, except for compressed files and for delimiters that can overlap themselves
/// (`abab`). A UTF-8 byte order mark at the start of a file is not part of its first record.
///
/// ```
/// use napreduce::Job;
/// use napreduce::input::TextRecords;
/// use napreduce::testing::JobTest;
///
/// let titles = || {
///     Job::input(TextRecords::beginning_with("#")).map_only(|chapter: &str, out| {
///         let (title, text) = chapter.split_once('\n').unwrap_or((chapter, ""));
///         out.emit(title, text.lines().count());
///     })
/// };
/// let test = JobTest::new(titles).input("# one\nto be\nor not\n# two\n").split_size(8);
/// assert_eq!(test.run().text(), "# one\t2\n# two\t0\n");
/// test.assert_preemption_safe();
/// ```
#[derive(Clone, Debug)]
pub struct TextRecords {
    boundary: Boundary,
}

#[derive(Clone, Debug)]
enum Boundary {
    /// The delimiter between two records.
    Delimiter(Vec<u8>),
    /// A newline and the beginning of the next record.
    Marker(Vec<u8>),
    BlankLines,
}

impl TextRecords {
    /// Records separated by `delimiter`, which may contain newlines. As with lines, a delimiter at the end of
    /// the file begins no record.
    ///
    /// ```
    /// use napreduce::Job;
    /// use napreduce::input::TextRecords;
    /// use napreduce::testing::JobTest;
    ///
    /// let job = || Job::input(TextRecords::delimited_by(";")).map_only(|record: &str, out| out.emit(record.trim(), ()));
    /// assert_eq!(JobTest::new(job).input("to be; or\nnot;").run().text(), "to be\nor\nnot\n");
    /// ```
    ///
    /// # Panics
    ///
    /// Panics if the delimiter is empty.
    pub fn delimited_by(delimiter: &str) -> TextRecords {
        assert!(
            !delimiter.is_empty(),
            "records need a delimiter of at least one byte between them"
        );
        TextRecords {
            boundary: Boundary::Delimiter(delimiter.as_bytes().to_vec()),
        }
    }

    /// Records from one line that begins with `marker` to the next one, without the newline at the end. Text
    /// before the first such line of a file is a record too.
    ///
    /// # Panics
    ///
    /// Panics if the marker is empty or contains a newline.
    pub fn beginning_with(marker: &str) -> TextRecords {
        assert!(
            !marker.is_empty() && !marker.contains('\n'),
            "marker {marker:?} is empty or contains a newline; use the beginning of one line"
        );
        TextRecords {
            boundary: Boundary::Marker([b"\n", marker.as_bytes()].concat()),
        }
    }

    /// Records separated by blank lines, without the newline at the end. A blank line may contain `\r` only.
    ///
    /// ```
    /// use napreduce::Job;
    /// use napreduce::input::TextRecords;
    /// use napreduce::testing::JobTest;
    ///
    /// let job = || Job::input(TextRecords::paragraphs()).map_only(|text: &str, out| out.emit(text.replace('\n', " "), ()));
    /// assert_eq!(JobTest::new(job).input("to be\nor\n\n\nnot\n").run().text(), "to be or\nnot\n");
    /// ```
    pub fn paragraphs() -> TextRecords {
        TextRecords {
            boundary: Boundary::BlankLines,
        }
    }
}

impl Boundary {
    /// Returns whether two occurrences can overlap, so that the text before decides which of them counts.
    fn overlaps(&self) -> bool {
        match self {
            Boundary::Delimiter(delimiter) => {
                (1..delimiter.len()).any(|length| delimiter.ends_with(&delimiter[..length]))
            }
            Boundary::Marker(_) | Boundary::BlankLines => false,
        }
    }

    /// Returns where to start reading in order to know whether a record begins at `offset`.
    fn look_back(&self, split: &Split, offset: u64, memory: usize) -> Result<u64, InputError> {
        match self {
            Boundary::Delimiter(delimiter) => Ok(offset.saturating_sub(delimiter.len() as u64)),
            Boundary::Marker(_) => Ok(offset.saturating_sub(1)),
            Boundary::BlankLines => before_blank_line(split, offset, memory),
        }
    }

    fn finder(&self) -> Finder<'static> {
        match self {
            Boundary::Delimiter(bytes) | Boundary::Marker(bytes) => Finder::new(bytes).into_owned(),
            Boundary::BlankLines => Finder::new(b"\n").into_owned(),
        }
    }
}

/// The result of searching for the end of a record.
enum SearchResult {
    /// The end of the record, and the start of the next one.
    Record { end: usize, next: usize },
    /// No end before this byte; read more.
    Nothing { searched: usize },
}

impl InputFormat for TextRecords {
    type Record<'a> = &'a str;
    type Reader = TextRecordReader;

    fn splitting(&self, path: &Path) -> Splitting {
        match Compression::of(path) {
            Some(compression) => Splitting::Compressed(compression),
            None if self.boundary.overlaps() => Splitting::FromStart,
            None => Splitting::Anywhere,
        }
    }

    fn open_at(
        &self,
        split: &Split,
        offset: u64,
        memory: usize,
    ) -> Result<TextRecordReader, InputError> {
        let is_start = offset > split.offset || offset == 0;
        let first = if is_start {
            offset
        } else {
            self.boundary.look_back(split, offset, memory)?
        };
        let source = Source::open(split, first, memory)?;
        Ok(TextRecordReader {
            end: if source.is_compressed() {
                u64::MAX
            } else {
                split.end()
            },
            position: source.position_at(offset),
            source,
            window: Window::new(first, None, 1, memory.saturating_add(1)),
            boundary: self.boundary.clone(),
            finder: self.boundary.finder(),
            // Blank lines at the start of a file belong to no paragraph.
            begins_at: (!is_start
                || (offset == 0 && matches!(self.boundary, Boundary::BlankLines)))
            .then_some(offset),
            searched: 0,
        })
    }
}

/// Reads [`TextRecords`].
pub struct TextRecordReader {
    source: Source,
    window: Window,
    boundary: Boundary,
    finder: Finder<'static>,
    /// Earliest start of the first record, until that is found.
    begins_at: Option<u64>,
    /// Records that begin here or later belong to the next split.
    end: u64,
    /// Available bytes that do not end a record.
    searched: usize,
    position: ReadPosition,
}

impl TextRecordReader {
    /// Searches for the end of the record that begins with `bytes[start..]`.
    fn find(&self, bytes: &[u8], from: usize, ended: bool) -> SearchResult {
        let width = self.finder.needle().len();
        let mut from = from;
        while let Some(at) = self.finder.find(&bytes[from..]).map(|at| from + at) {
            match &self.boundary {
                Boundary::Delimiter(_) => {
                    return SearchResult::Record {
                        end: at,
                        next: at + width,
                    };
                }
                Boundary::Marker(_) => {
                    return SearchResult::Record {
                        end: at,
                        next: at + 1,
                    };
                }
                Boundary::BlankLines => match blank_lines(&bytes[at + 1..], ended) {
                    Some(0) => from = at + 1,
                    Some(blank) => {
                        return SearchResult::Record {
                            end: at,
                            next: at + 1 + blank,
                        };
                    }
                    None => return SearchResult::Nothing { searched: at },
                },
            }
        }
        SearchResult::Nothing {
            searched: (bytes.len() + 1)
                .saturating_sub(width)
                .max(from.min(bytes.len())),
        }
    }

    fn fill(&mut self) -> Result<(), InputError> {
        self.window.fill(&mut self.source, self.end)
    }

    /// Advances to the first record that begins in the split; returns false if there is none.
    fn enter(&mut self, earliest: u64) -> Result<bool, InputError> {
        if self.window.offset() == 0 && matches!(self.boundary, Boundary::BlankLines) {
            while self.window.available().len() < MARK_BYTES && !self.window.ended() {
                self.fill()?;
            }
            self.window
                .take(mark_length(self.source.path(), self.window.available())?);
            self.pass_over_blank_lines()?;
            if self.window.offset() >= earliest {
                return Ok(true);
            }
        }
        loop {
            match self.find(self.window.available(), 0, self.window.ended()) {
                SearchResult::Record { next, .. } => {
                    self.window.take(next);
                    if self.window.offset() >= earliest {
                        return Ok(true);
                    }
                    // The search for a marker needs the newline before it, that for a blank line the newline
                    // at its start.
                }
                SearchResult::Nothing { .. } if self.window.ended() => return Ok(false),
                SearchResult::Nothing { searched } => {
                    self.window.take(searched);
                    if self.window.offset() >= self.end {
                        return Ok(false);
                    }
                    self.fill()?;
                }
            }
        }
    }

    fn pass_over_blank_lines(&mut self) -> Result<(), InputError> {
        loop {
            match blank_lines(self.window.available(), self.window.ended()) {
                Some(blank) => {
                    self.window.take(blank);
                    return Ok(());
                }
                None => self.fill()?,
            }
        }
    }

    /// Returns the last record of a file without its final newline, if that is not part of it.
    fn without_newline<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        match self.boundary {
            Boundary::Delimiter(_) => record,
            Boundary::Marker(_) | Boundary::BlankLines => {
                record.strip_suffix(b"\n").unwrap_or(record)
            }
        }
    }

    fn checked<'a>(&self, base: u64, bytes: &'a [u8]) -> Result<&'a str, InputError> {
        let bytes = match self.boundary {
            Boundary::Delimiter(_) => bytes,
            Boundary::Marker(_) | Boundary::BlankLines => {
                bytes.strip_suffix(b"\r").unwrap_or(bytes)
            }
        };
        std::str::from_utf8(bytes).map_err(|error| InputError::NotText {
            path: self.source.path().to_owned(),
            offset: base + error.valid_up_to() as u64,
            line: None,
        })
    }
}

/// Returns the length of the blank lines at the start of `bytes`; `None` if more bytes are needed.
fn blank_lines(bytes: &[u8], ended: bool) -> Option<usize> {
    let mut blank = 0;
    loop {
        let line = &bytes[blank..];
        let returns = line.iter().take_while(|byte| **byte == b'\r').count();
        match line.get(returns) {
            Some(b'\n') => blank += returns + 1,
            Some(_) => return Some(blank),
            None if ended => return Some(bytes.len()),
            None => return None,
        }
    }
}

/// Returns the offset of the newline before the last blank line in front of `offset`, or of the bytes there;
/// 0 at the start of the file. A line cut by `offset` counts as blank if its part before is blank.
fn before_blank_line(split: &Split, offset: u64, memory: usize) -> Result<u64, InputError> {
    let mut end = offset;
    let mut buffer = vec![0; LOOK_BACK_BYTES];
    loop {
        let start = end.saturating_sub(LOOK_BACK_BYTES as u64);
        let mut source = Source::open(split, start, memory)?;
        let mut read = 0;
        while start + (read as u64) < end {
            match source.read(&mut buffer[read..(end - start) as usize])? {
                0 => break,
                more => read += more,
            }
        }
        let bytes = &buffer[..read];
        let bytes = if end == offset {
            bytes.strip_suffix(b"\n").unwrap_or(bytes)
        } else {
            bytes
        };
        match bytes.iter().rposition(|byte| *byte != b'\r') {
            Some(at) if start + (at as u64) < MARK_BYTES as u64 => return Ok(0),
            Some(at) => return Ok(start + at as u64),
            None if start == 0 => return Ok(0),
            None => end = start,
        }
    }
}

impl RecordReader<TextRecords> for TextRecordReader {
    fn read_batch<E: From<InputError>>(
        &mut self,
        each: &mut impl FnMut(&str) -> Result<(), E>,
    ) -> Result<bool, E> {
        if let Some(earliest) = self.begins_at {
            if !self.enter(earliest)? {
                self.position.set(self.window.offset().max(earliest));
                return Ok(false);
            }
            self.begins_at = None;
        }
        loop {
            let base = self.window.offset();
            self.position.set(base);
            if base >= self.end || (self.window.ended() && self.window.available().is_empty()) {
                return Ok(false);
            }
            let (taken, searched) = self.pass_records(base, each)?;
            self.position.set(base + taken as u64);
            self.window.take(taken);
            self.searched = searched;
            if taken > 0 {
                return Ok(true);
            }
            self.fill()?;
        }
    }

    fn offset(&self) -> u64 {
        self.position.get()
    }

    fn consumed(&self) -> u64 {
        self.source.consumed(self.position.get())
    }

    fn position(&self) -> Option<ReadPosition> {
        Some(self.position.clone())
    }

    fn byte_position(&self) -> Option<ReadPosition> {
        self.position()
    }
}

impl TextRecordReader {
    /// Passes on the complete records in the window. Returns their length, and the number of bytes after them
    /// known not to end a record.
    fn pass_records<E: From<InputError>>(
        &self,
        base: u64,
        each: &mut impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(usize, usize), E> {
        let bytes = self.window.available();
        let ended = self.window.ended();
        let mut start = 0;
        let mut from = self.searched;
        while start < bytes.len() && base + (start as u64) < self.end {
            let (record, next) = match self.find(bytes, from, ended) {
                SearchResult::Record { end, next } => (&bytes[start..end], next),
                SearchResult::Nothing { .. } if ended => {
                    (self.without_newline(&bytes[start..]), bytes.len())
                }
                SearchResult::Nothing { searched } => {
                    return Ok((start, searched.saturating_sub(start)));
                }
            };
            let offset = base + start as u64;
            self.position.set(offset);
            let mark = if offset == 0 {
                mark_length(self.source.path(), record)?
            } else {
                0
            };
            if mark > 0 && mark == bytes.len() {
                // The file has nothing but a mark.
                return Ok((next, 0));
            }
            each(self.checked(offset + mark as u64, &record[mark..])?)?;
            (start, from) = (next, next);
        }
        Ok((start, 0))
    }
}
