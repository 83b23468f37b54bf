//! Reading the csv rows of a split.
//!
//! Owns the header, the two ways to find rows (lines, and records from the start on), and which bytes are a
//! bad row. Does not own fields nor types.

use std::marker::PhantomData;

use csv::ByteRecord;
use napreduce_live::ReadPosition;

use super::super::bad::{BadRow, BadRowGate, RowPlace, bad_table};
use super::super::{TypedRow, without_mark};
use super::{Dialect, Table};
use crate::input::{BadRows, InputError, LineBlocks, RecordReader, Source, Split, Window, for_each_line};

use super::CsvRows;

const UNCLOSED_LINE: &str =
    "a quoted field is not closed on its line; where fields hold newlines, read them with multiline()";
const UNCLOSED_FILE: &str = "a quoted field is not closed up to the end of the file";

/// Reads [`CsvRows`].
///
/// ```
/// use napreduce::input::{InputError, InputFormat, RecordReader, Split};
/// use napreduce::rows::{CsvRowReader, CsvRows};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("input");
/// # std::fs::write(&path, b"name,count\na,1\n")?;
/// let format = CsvRows::<(String, u64)>::default();
/// let mut reader: CsvRowReader<(String, u64)> = format.open(&Split::whole(&path, 15), 1 << 20)?;
/// let mut rows = Vec::new();
/// while reader.read_batch(&mut |row| -> Result<(), InputError> {
///     rows.push(row);
///     Ok(())
/// })? {}
/// assert_eq!(rows, [("a".to_owned(), 1)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct CsvRowReader<R> {
    records: Records,
    table: Table,
    gate: BadRowGate,
    /// Where the first record of the file begins, if it is in this split.
    file_start: Option<u64>,
    header: bool,
    row: PhantomData<fn() -> R>,
}

/// Where the bytes of records come from.
enum Records {
    Lines(LineBlocks),
    /// Records that may go over several lines.
    Multiline(Multiline),
}

struct Multiline {
    source: Source,
    window: Window,
    position: ReadPosition,
}

impl<R: TypedRow> CsvRowReader<R> {
    pub(super) fn open(
        dialect: Dialect,
        bad_rows: BadRows,
        split: &Split,
        offset: u64,
        memory: usize,
    ) -> Result<Self, InputError> {
        let header = if dialect.header { read_header(dialect, split, memory)? } else { None };
        let table = match header {
            Some(header) => Table::of::<R>(dialect.delimiter, &header)
                .map_err(|reason| bad_table(&split.path, 0, reason))?,
            None => Table::without_header(dialect.delimiter),
        };
        let (records, file_start) = match dialect.multiline {
            true => (Records::Multiline(Multiline::open(split, offset, memory)?), Some(0)),
            false => {
                let lines = LineBlocks::open(split, offset, memory)?;
                let file_start = lines.file_start();
                (Records::Lines(lines), file_start)
            }
        };
        let gate = BadRowGate::new(bad_rows, split, memory);
        Ok(CsvRowReader { records, table, gate, file_start, header: dialect.header, row: PhantomData })
    }
}

/// The first record of the file; `None` of an empty one.
fn read_header(dialect: Dialect, split: &Split, memory: usize) -> Result<Option<ByteRecord>, InputError> {
    let file = Split::whole(&split.path, split.file_length);
    let mut beginning = Multiline::open(&file, 0, memory)?;
    let mut table = Table::without_header(dialect.delimiter);
    loop {
        let available = without_mark(beginning.window.available());
        if available.is_empty() && beginning.window.ended() {
            return Ok(None);
        }
        let line = memchr::memchr(b'\n', available).filter(|_| !dialect.multiline);
        let (bytes, all) = match line {
            Some(newline) => (&available[..=newline], true),
            None => (available, beginning.window.ended()),
        };
        match table.take(bytes, all) {
            Ok(Some(_)) => return Ok(Some(table.record)),
            Ok(None) => beginning.fill()?,
            Err(_) => {
                let reason = "the header has a quoted field that is not closed".to_owned();
                return Err(bad_table(&split.path, 0, reason));
            }
        }
    }
}

impl Multiline {
    fn open(split: &Split, offset: u64, memory: usize) -> Result<Self, InputError> {
        let source = Source::open(split, offset, memory)?;
        let position = ReadPosition::new(split.offset..split.end(), 0..split.length);
        position.set(offset);
        let window = Window::new(offset, None, 1, memory.saturating_add(1));
        Ok(Multiline { source, window, position })
    }

    fn fill(&mut self) -> Result<(), InputError> {
        self.window.fill(&mut self.source, u64::MAX)
    }
}

/// What is the same for all records of a batch.
struct Batch<'r> {
    table: &'r mut Table,
    gate: &'r BadRowGate,
    file_start: Option<u64>,
    header: bool,
}

impl Batch<'_> {
    /// Takes a record off the front of `bytes` and hands it out, unless it is the header, empty or bad; how
    /// many bytes that were, or `None` where the record may go on behind them.
    fn pass<R: TypedRow, E: From<InputError>>(
        &mut self,
        (bytes, all): (&[u8], bool),
        offset: u64,
        unclosed: &str,
        each: &mut impl FnMut(R::Of<'_>) -> Result<(), E>,
    ) -> Result<Option<usize>, E> {
        let is_first = self.file_start == Some(offset);
        let record = if is_first { without_mark(bytes) } else { bytes };
        let mark = bytes.len() - record.len();
        let (taken, reason) = match self.table.take(record, all) {
            Ok(None) => return Ok(None),
            Ok(Some(taken)) if is_first && self.header => return Ok(Some(taken.bytes + mark)),
            Ok(Some(taken)) => {
                let is_empty = matches!(&record[..taken.bytes], b"" | b"\n" | b"\r\n");
                match self.table.row::<R>(taken) {
                    _ if is_empty => return Ok(Some(taken.bytes + mark)),
                    Ok(row) => {
                        each(row)?;
                        return Ok(Some(taken.bytes + mark));
                    }
                    Err(reason) => (taken.bytes, reason),
                }
            }
            Err(_) => (record.len(), unclosed.to_owned()),
        };
        let row = record[..taken].trim_ascii_end();
        self.gate.pass(BadRow { place: RowPlace::Offset(offset), row, reason })?;
        Ok(Some(taken + mark))
    }
}

impl<R: TypedRow> RecordReader<CsvRows<R>> for CsvRowReader<R> {
    fn read_batch<E: From<InputError>>(
        &mut self,
        each: &mut impl FnMut(R::Of<'_>) -> Result<(), E>,
    ) -> Result<bool, E> {
        let CsvRowReader { records, table, gate, file_start, header, .. } = self;
        let mut batch = Batch { table, gate, file_start: *file_start, header: *header };
        match records {
            Records::Lines(lines) => {
                if !lines.advance()? {
                    return Ok(false);
                }
                let (block, base, line) = lines.block();
                for_each_line(block, base, line, |range| {
                    batch.pass::<R, E>((&block[range], true), line.get(), UNCLOSED_LINE, each).map(drop)
                })?;
                Ok(true)
            }
            Records::Multiline(from) => loop {
                let (available, base) = (from.window.available(), from.window.offset());
                let mut done = 0;
                while done < available.len() {
                    let offset = base + done as u64;
                    from.position.set(offset);
                    let rest = (&available[done..], from.window.ended());
                    match batch.pass::<R, E>(rest, offset, UNCLOSED_FILE, each)? {
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
        }
    }

    fn offset(&self) -> u64 {
        match &self.records {
            Records::Lines(lines) => lines.offset(),
            Records::Multiline(from) => from.position.get(),
        }
    }

    fn consumed(&self) -> u64 {
        match &self.records {
            Records::Lines(lines) => lines.consumed(),
            Records::Multiline(from) => from.source.consumed(from.position.get()),
        }
    }

    fn position(&self) -> Option<ReadPosition> {
        Some(match &self.records {
            Records::Lines(lines) => lines.position(),
            Records::Multiline(from) => from.position.clone(),
        })
    }

    fn byte_position(&self) -> Option<ReadPosition> {
        self.position()
    }
}
