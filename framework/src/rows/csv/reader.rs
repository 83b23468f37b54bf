//! Reading the csv rows of a split.

use std::marker::PhantomData;

use napreduce_connectors::csv::{Header, Table};
use napreduce_task::ReadPosition;

use super::super::TypedRow;
use super::super::bad::{BadRow, BadRowGate, RowPlace, bad_table};
use super::Dialect;
use crate::input::{
    InputError, LineBlocks, RecordReader, Skip, Source, Split, Window, for_each_line, mark_length,
};

use super::CsvRows;

const UNCLOSED_FILE: &str = "a quoted field does not end before the end of the file";
const LONE_RETURN: &str =
    "a carriage return outside quotes ends the row inside a line; use one kind of line end";

/// Reads [`CsvRows`].
pub struct CsvRowReader<R> {
    records: Records,
    table: Table,
    gate: BadRowGate,
    beginning: Beginning,
    /// Start of the file, if it is in this split.
    file_start: Option<u64>,
    row: PhantomData<fn() -> R>,
}

/// The source of records.
enum Records {
    Lines(LineBlocks),
    /// Records that may span several lines, or whose lines end in `\r`.
    Multiline(Multiline),
    /// The first split contains all records of the file; this one ends here.
    InFirstSplit(Split),
}

struct Multiline {
    source: Source,
    window: Window,
    position: ReadPosition,
    split_length: u64,
}

/// The beginning of a file.
#[derive(Default)]
struct Beginning {
    /// Length of its byte order mark.
    mark: usize,
    /// The first nonempty record, if it names columns.
    header: Option<Header>,
    /// Bytes before the header line.
    header_at: u64,
    /// Whether the first record ends in `\r` alone. The first split then reads the whole file.
    ends_in_return: bool,
}

impl<R: TypedRow> CsvRowReader<R> {
    pub(super) fn open(
        dialect: Dialect,
        skip: Skip,
        split: &Split,
        offset: u64,
        memory: usize,
    ) -> Result<Self, InputError> {
        let beginning = read_beginning(dialect, split, memory)?;
        let table = match &beginning.header {
            Some(header) => Table::of::<R::Of<'_>>(dialect.syntax, header)
                .map_err(|reason| bad_table(&split.path, beginning.header_at, reason))?,
            None => Table::without_header(dialect.syntax),
        };
        let (records, file_start) = if !dialect.multiline && !beginning.ends_in_return {
            let lines = LineBlocks::open(split, offset, memory)?;
            let file_start = lines.file_start();
            (Records::Lines(lines), file_start)
        } else if split.offset == 0 {
            (
                Records::Multiline(Multiline::open(split, offset, memory)?),
                Some(0),
            )
        } else {
            (Records::InFirstSplit(split.clone()), None)
        };
        let gate = BadRowGate::new(skip, split, memory);
        Ok(CsvRowReader {
            records,
            table,
            gate,
            beginning,
            file_start,
            row: PhantomData,
        })
    }
}

fn read_beginning(dialect: Dialect, split: &Split, memory: usize) -> Result<Beginning, InputError> {
    let file = Split {
        offset: 0,
        length: split.file_length,
        ..split.clone()
    };
    let mut reader = Multiline::open(&file, 0, memory)?;
    let mut table = Table::without_header(dialect.syntax);
    let mut beginning = Beginning::default();
    loop {
        let at = reader.window.offset();
        let ended = reader.window.ended();
        let available = reader.window.available();
        beginning.mark = if at == 0 {
            mark_length(&split.path, available)?
        } else {
            beginning.mark
        };
        let available = if at == 0 {
            &available[beginning.mark..]
        } else {
            available
        };
        if available.is_empty() && ended {
            return Ok(beginning);
        }
        let line = memchr::memchr(b'\n', available).filter(|_| !dialect.multiline);
        let (bytes, all) = match line {
            Some(newline) => (&available[..=newline], true),
            None => (available, ended),
        };
        match table.take(bytes, all) {
            Ok(Some(taken)) => {
                let record = &bytes[..taken.bytes];
                beginning.ends_in_return |=
                    record.ends_with(b"\r") && record.len() < available.len();
                if is_empty_line(record) {
                    let mark = if at == 0 { beginning.mark } else { 0 };
                    reader.window.take(mark + taken.bytes);
                    continue;
                }
                beginning.header = dialect.header.then(|| table.into_header());
                beginning.header_at = at;
                return Ok(beginning);
            }
            Ok(None) => reader.fill()?,
            Err(_) if dialect.header => {
                let reason = "a quoted field of the header does not end".to_owned();
                return Err(bad_table(&split.path, at, reason));
            }
            Err(_) => return Ok(beginning),
        }
    }
}

fn is_empty_line(record: &[u8]) -> bool {
    matches!(record, b"" | b"\n" | b"\r\n" | b"\r")
}

impl Multiline {
    /// Opens the file of `split` from `offset` to its end.
    fn open(split: &Split, offset: u64, memory: usize) -> Result<Self, InputError> {
        let position = ReadPosition::new(split.offset..split.end(), 0..split.length);
        position.set(offset);
        let file = Split {
            length: split.file_length - split.offset,
            ..split.clone()
        };
        let source = Source::open(&file, offset, memory)?;
        let window = Window::new(offset, None, 1, memory.saturating_add(1));
        Ok(Multiline {
            source,
            window,
            position,
            split_length: split.length,
        })
    }

    fn fill(&mut self) -> Result<(), InputError> {
        self.window.fill(&mut self.source, u64::MAX)
    }
}

/// Data common to all records of a batch.
struct Batch<'r> {
    table: &'r mut Table,
    gate: &'r BadRowGate,
    beginning: &'r Beginning,
    file_start: Option<u64>,
    /// Whether each record is one complete line.
    lines: bool,
}

impl Batch<'_> {
    /// Takes a record from the front of `bytes` and passes it on, unless it is the header, empty or bad.
    /// Returns its length, or `None` if the record may continue after `bytes`; with `all`, there are no
    /// further bytes.
    fn pass<R: TypedRow, E: From<InputError>>(
        &mut self,
        bytes: &[u8],
        all: bool,
        offset: u64,
        each: &mut impl FnMut(R::Of<'_>) -> Result<(), E>,
    ) -> Result<Option<usize>, E> {
        let mark = if self.file_start == Some(offset) {
            self.beginning.mark
        } else {
            0
        };
        let is_header = self.beginning.header.is_some()
            && self
                .file_start
                .map(|start| start + self.beginning.header_at)
                == Some(offset);
        let record = &bytes[mark..];
        let (taken, reason) = match self.table.take(record, all) {
            Ok(None) => return Ok(None),
            Ok(Some(taken)) if self.lines && taken.bytes < record.len() => {
                (record.len(), LONE_RETURN.to_owned())
            }
            Ok(Some(taken)) if is_header || is_empty_line(&record[..taken.bytes]) => {
                return Ok(Some(taken.bytes + mark));
            }
            Ok(Some(taken)) => match self.table.row::<R::Of<'_>>(taken) {
                Ok(row) => {
                    each(row)?;
                    return Ok(Some(taken.bytes + mark));
                }
                Err(reason) => (taken.bytes, reason),
            },
            Err(_) if self.lines => return Err(self.gate.unclosed_quote(offset, record).into()),
            Err(_) => (record.len(), UNCLOSED_FILE.to_owned()),
        };
        let row = record[..taken].trim_ascii_end();
        let place = if self.beginning.ends_in_return {
            RowPlace::Row(format!("byte {offset}"))
        } else {
            RowPlace::Offset(offset)
        };
        self.gate.pass(BadRow { place, row, reason })?;
        Ok(Some(taken + mark))
    }
}

impl<R: TypedRow> RecordReader<CsvRows<R>> for CsvRowReader<R> {
    fn read_batch<E: From<InputError>>(
        &mut self,
        each: &mut impl FnMut(R::Of<'_>) -> Result<(), E>,
    ) -> Result<bool, E> {
        let CsvRowReader {
            records,
            table,
            gate,
            beginning,
            file_start,
            ..
        } = self;
        let lines = matches!(records, Records::Lines(_));
        let mut batch = Batch {
            table,
            gate,
            beginning,
            file_start: *file_start,
            lines,
        };
        match records {
            Records::Lines(lines) => {
                if !lines.advance()? {
                    return Ok(false);
                }
                let block = lines.block();
                for_each_line(block, 0, |range| {
                    batch
                        .pass::<R, E>(&block.bytes[range], true, block.line.get(), each)
                        .map(drop)
                })?;
                Ok(true)
            }
            Records::Multiline(from) => loop {
                let available = from.window.available();
                let base = from.window.offset();
                let mut done = 0;
                while done < available.len() {
                    let offset = base + done as u64;
                    from.position.set(offset);
                    let rest = &available[done..];
                    let all = from.window.ended();
                    match batch.pass::<R, E>(rest, all, offset, each)? {
                        Some(taken) => done += taken,
                        None => break,
                    }
                }
                from.position.set(base + done as u64);
                from.window.take(done);
                if done > 0 || from.window.ended() {
                    return Ok(done > 0);
                }
                from.fill()?;
            },
            Records::InFirstSplit(_) => Ok(false),
        }
    }

    fn offset(&self) -> u64 {
        match &self.records {
            Records::Lines(lines) => lines.offset(),
            Records::Multiline(from) => from.position.get(),
            Records::InFirstSplit(split) => split.end(),
        }
    }

    fn consumed(&self) -> u64 {
        match &self.records {
            Records::Lines(lines) => lines.consumed(),
            Records::Multiline(from) => from
                .source
                .consumed(from.position.get())
                .min(from.split_length),
            Records::InFirstSplit(split) => split.length,
        }
    }

    fn position(&self) -> Option<ReadPosition> {
        match &self.records {
            Records::Lines(lines) => Some(lines.position()),
            Records::Multiline(from) => Some(from.position.clone()),
            Records::InFirstSplit(_) => None,
        }
    }

    fn byte_position(&self) -> Option<ReadPosition> {
        self.position()
    }
}
