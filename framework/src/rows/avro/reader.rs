//! Reading the blocks of an Avro container file.
//!
//! Owns the header, markers, which blocks belong to a split, and positions, which count rows: the offset of a
//! split and the rows of it that are done. Does not own what is in a block.

use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use memchr::memmem::Finder;
use napreduce_live::{ByteSize, ReadPosition, progress};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::super::TypedRow;
use super::super::bad::{BadRow, BadRowGate, RowPlace, bad_table};
use super::datum::{Datum, take_counted, take_long};
use super::schema::Schema;
use super::{AvroRows, Codec};
use crate::input::{
    BadRows, InputBytes, InputError, PositionedRead, RecordReader, Split, open_input, open_path,
};

const MAGIC: &[u8; 4] = b"Obj\x01";
const MARKER_BYTES: usize = 16;
/// Two numbers of at most ten bytes each.
const BLOCK_HEADER_BYTES: usize = 20;
const SEARCH_BYTES: usize = 64 << 10;
/// Rows of no bytes that a block may have.
const EMPTY_ROWS_MAX: u64 = 1 << 32;
/// What a value of no bytes takes in memory, about.
const EMPTY_VALUE_BYTES: u64 = 64;
const TOO_SHORT: &str = "it ends too early; the file is incomplete";

/// Reads [`AvroRows`].
///
/// ```
/// use napreduce::input::{InputError, InputFormat, RecordReader, Split};
/// use napreduce::rows::{AvroRowReader, AvroRows};
/// use serde::de::IgnoredAny;
///
/// /// How many rows there are in a file.
/// fn count(path: &std::path::Path, length: u64) -> Result<u64, InputError> {
///     let split = Split::whole(path, length);
///     let mut reader: AvroRowReader<IgnoredAny> = AvroRows::<IgnoredAny>::default().open(&split, 1 << 20)?;
///     let mut rows = 0;
///     while reader.read_batch(&mut |_: IgnoredAny| -> Result<(), InputError> {
///         rows += 1;
///         Ok(())
///     })? {}
///     Ok(rows)
/// }
/// # let _ = count;
/// ```
pub struct AvroRowReader<R> {
    file: Container,
    gate: BadRowGate,
    split: Split,
    memory: usize,
    schema: Schema,
    codec: Codec,
    /// Where the next marker is to be searched, and whether one was found right before.
    next: u64,
    /// Rows that are still to be passed over.
    skipped: u64,
    position: ReadPosition,
    content: Vec<u8>,
    row: PhantomData<fn() -> R>,
}

/// A container file without what is in its blocks.
struct Container {
    file: InputBytes,
    path: PathBuf,
    length: u64,
    marker: [u8; MARKER_BYTES],
}

/// What stands before a block.
struct BlockHeader {
    rows: u64,
    /// Where its content begins.
    content: u64,
    bytes: usize,
}

/// Refuses what does not begin as such a file.
pub(super) fn check(path: &Path) -> Result<(), InputError> {
    let file = open_path(path).map_err(|error| InputError::unreadable(path, error))?;
    check_beginning(path, &*file)
}

fn check_beginning(path: &Path, file: &dyn PositionedRead) -> Result<(), InputError> {
    let unreadable = |error| InputError::unreadable(path, error);
    let mut first = [0; MAGIC.len()];
    match file.read_exact_at(&mut first, 0) {
        Ok(()) if first == *MAGIC => Ok(()),
        Err(_) if file.length().map_err(unreadable)? == 0 => Ok(()),
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => Err(unreadable(error)),
        _ => Err(bad_table(path, 0, "it does not begin as an Avro container file".to_owned())),
    }
}

impl Container {
    fn read(&self, at: u64, wanted: usize) -> Result<Vec<u8>, InputError> {
        let held = usize::try_from(self.length.saturating_sub(at)).unwrap_or(usize::MAX).min(wanted);
        let mut bytes = vec![0; held];
        let read = self.file.read_exact_at(&mut bytes, at);
        read.map_err(|error| InputError::of_read(&self.path, self.length, at, error))?;
        progress();
        Ok(bytes)
    }

    #[cold]
    fn bad(&self, at: u64, reason: impl Into<String>) -> InputError {
        bad_table(&self.path, at, reason.into())
    }

    /// What the file says of itself, and where its first marker is.
    fn header(&mut self, memory: usize) -> Result<(Schema, Codec, u64), InputError> {
        let mut wanted = SEARCH_BYTES;
        loop {
            let bytes = self.read(0, wanted)?;
            let mut rest = bytes.get(MAGIC.len()..).unwrap_or_default();
            if let Some((schema, codec)) = take_metadata(&mut rest)
                && let Some((marker, _)) = rest.split_first_chunk()
            {
                self.marker = *marker;
                let schema = Schema::parse(schema).map_err(|reason| self.bad(0, reason))?;
                let codec = Codec::of(codec).map_err(|reason| self.bad(0, reason))?;
                return Ok((schema, codec, (bytes.len() - rest.len()) as u64));
            }
            if bytes.len() as u64 == self.length {
                return Err(self.bad(self.length, TOO_SHORT));
            }
            if wanted >= memory {
                let limit = ByteSize::new(memory as u64);
                return Err(self.bad(0, format!("its header is longer than {limit}; raise --task-memory")));
            }
            wanted = wanted.saturating_mul(4).min(memory);
        }
    }

    /// The first marker that begins at `from` or later and before `until`.
    fn find_marker(&self, from: u64, until: u64) -> Result<Option<u64>, InputError> {
        let finder = Finder::new(&self.marker);
        let mut at = from;
        while at < until {
            let bytes = self.read(at, SEARCH_BYTES + MARKER_BYTES - 1)?;
            if let Some(found) = finder.find(&bytes) {
                return Ok(Some(at + found as u64).filter(|found| *found < until));
            }
            at += SEARCH_BYTES as u64;
        }
        Ok(None)
    }

    /// `None` at the end of the file.
    fn block(&self, at: u64) -> Result<Option<BlockHeader>, InputError> {
        let bytes = self.read(at, BLOCK_HEADER_BYTES)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let mut rest = &bytes[..];
        let (rows, length) = (take_long(&mut rest), take_long(&mut rest));
        let (Some(rows), Some(length)) = (rows, length) else {
            return Err(self.bad(self.length, TOO_SHORT));
        };
        let content = at + (bytes.len() - rest.len()) as u64;
        let (Ok(rows), Ok(stored)) = (u64::try_from(rows), u64::try_from(length)) else {
            return Err(self.bad(at, format!("it is damaged: a block of {rows} rows in {length} bytes")));
        };
        let end = content.saturating_add(stored).saturating_add(MARKER_BYTES as u64);
        match usize::try_from(stored) {
            Ok(bytes) if end <= self.length => Ok(Some(BlockHeader { rows, content, bytes })),
            _ => Err(self.bad(self.length, TOO_SHORT)),
        }
    }
}

/// The schema and the codec in a header; `None` where it is cut off.
fn take_metadata<'b>(bytes: &mut &'b [u8]) -> Option<(&'b [u8], &'b [u8])> {
    let (mut schema, mut codec) = (&b""[..], &b"null"[..]);
    loop {
        let count = take_long(bytes)?;
        if count < 0 {
            take_long(bytes)?;
        }
        if count == 0 {
            return Some((schema, codec));
        }
        for _ in 0..count.unsigned_abs() {
            let key = take_counted(bytes).ok()?;
            let value = take_counted(bytes).ok()?;
            match key {
                b"avro.schema" => schema = value,
                b"avro.codec" => codec = value,
                _ => {}
            }
        }
    }
}

impl<R: TypedRow> AvroRowReader<R> {
    pub(super) fn open(
        bad_rows: BadRows,
        split: &Split,
        offset: u64,
        memory: usize,
    ) -> Result<Self, InputError> {
        let file = open_input(split, memory, false);
        let file = file.map_err(|error| InputError::unreadable(&split.path, error))?;
        check_beginning(&split.path, &*file)?;
        let (path, length) = (split.path.clone(), split.file_length);
        let mut file = Container { file, path, length, marker: [0; MARKER_BYTES] };
        let (schema, codec, first) = match length {
            0 => (Schema::parse(b"\"null\"").map_err(|reason| file.bad(0, reason))?, Codec::Null, 0),
            _ => file.header(memory)?,
        };
        let position = ReadPosition::new(split.offset..split.end(), 0..split.length);
        position.set(offset);
        Ok(AvroRowReader {
            gate: BadRowGate::new(bad_rows, split, memory),
            next: if length == 0 {
                0
            } else {
                file.find_marker(first.max(split.offset), split.end())?.unwrap_or(split.end())
            },
            split: split.clone(),
            memory,
            schema,
            codec,
            skipped: offset.saturating_sub(split.offset),
            position,
            content: Vec::new(),
            row: PhantomData,
            file,
        })
    }

    /// Reads the next block of the split in which a row is not done; how many rows it has, and how many of
    /// them are.
    fn next_block(&mut self) -> Result<Option<(u64, u64, u64)>, InputError> {
        while self.next < self.split.end() {
            let Some(header) = self.file.block(self.next + MARKER_BYTES as u64)? else { break };
            let at = self.next;
            let end = header.content + header.bytes as u64;
            if self.file.read(end, MARKER_BYTES)? != self.file.marker {
                return Err(self.file.bad(at, "it is damaged: a block does not end with the file's marker"));
            }
            self.next = end;
            if header.rows <= self.skipped {
                self.skipped -= header.rows;
                continue;
            }
            if header.bytes > self.memory {
                return Err(self.file.bad(at, super::too_large(self.memory)));
            }
            let stored = self.file.read(header.content, header.bytes)?;
            let content = self.codec.decompress(stored, self.memory);
            self.content = content.map_err(|reason| self.file.bad(at, reason))?;
            let (rows, held) = (header.rows, self.content.len());
            if !self.schema.may_be_empty(self.schema.root) && rows > held as u64 {
                return Err(self
                    .file
                    .bad(at, format!("it is damaged: a block of {rows} rows in {held} bytes")));
            }
            if rows > (held as u64).max(EMPTY_ROWS_MAX) {
                let reason =
                    format!("a block has {rows} rows of no bytes; at most {EMPTY_ROWS_MAX} are read");
                return Err(self.file.bad(at, reason));
            }
            return Ok(Some((at, header.rows, std::mem::take(&mut self.skipped))));
        }
        self.next = self.split.end();
        Ok(None)
    }
}

/// The current row, counted in the split.
fn row_in_words(position: &ReadPosition, split: &Split) -> String {
    let number = position.get() - split.offset + 1;
    if split.offset == 0 {
        format!("row {number}")
    } else {
        format!("row {number} behind byte {}", split.offset)
    }
}

impl<R: TypedRow> RecordReader<AvroRows<R>> for AvroRowReader<R> {
    fn read_batch<E: From<InputError>>(
        &mut self,
        each: &mut impl FnMut(R::Of<'_>) -> Result<(), E>,
    ) -> Result<bool, E> {
        let Some((at, rows, skipped)) = self.next_block()? else { return Ok(false) };
        let AvroRowReader { file, schema, content, position, gate, split, memory, .. } = self;
        let empty_max = *memory as u64 / EMPTY_VALUE_BYTES;
        let unreadable = |error| file.bad(at, format!("a row cannot be read: {error}"));
        let mut rest = &content[..];
        for number in 0..rows {
            let begin = rest;
            if number < skipped {
                let passed = IgnoredAny::deserialize(Datum::new(schema, &mut rest, &mut { empty_max }));
                passed.map_err(unreadable)?;
                continue;
            }
            match R::Of::deserialize(Datum::new(schema, &mut rest, &mut { empty_max })) {
                Ok(row) => each(row)?,
                Err(error) => {
                    // A row of another type ends where its schema says; bytes that are no row at all do not.
                    rest = begin;
                    let shown =
                        serde_json::Value::deserialize(Datum::new(schema, &mut &*begin, &mut { empty_max }));
                    let passed = IgnoredAny::deserialize(Datum::new(schema, &mut rest, &mut { empty_max }));
                    passed.map_err(unreadable)?;
                    let row = shown.map(|row| row.to_string()).unwrap_or_default();
                    let place = RowPlace::Row(row_in_words(position, split));
                    gate.pass(BadRow { place, row: row.as_bytes(), reason: error.to_string() })?;
                }
            }
            position.set(position.get() + 1);
        }
        if !rest.is_empty() {
            let reason = format!("it is damaged: a block has {} bytes behind its rows", rest.len());
            return Err(file.bad(at, reason).into());
        }
        Ok(true)
    }

    /// Counts rows, since those of a block share its bytes.
    fn offset(&self) -> u64 {
        self.position.get()
    }

    fn place(&self) -> String {
        row_in_words(&self.position, &self.split)
    }

    fn consumed(&self) -> u64 {
        self.next.clamp(self.split.offset, self.split.end()) - self.split.offset
    }

    fn position(&self) -> Option<ReadPosition> {
        Some(self.position.clone())
    }
}
