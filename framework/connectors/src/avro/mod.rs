//! Avro container files, read block by block.
//!
//! Datums are decoded here instead of by `apache-avro`, which builds a tree of every datum or copies texts,
//! does not limit zero-size values, and rejects schemas that other programs write.

mod codec;
mod datum;
mod schema;

use std::ops::Range;

use memchr::memmem::FinderRev;
use serde::Deserialize;
use serde::de::IgnoredAny;

use self::codec::Codec;
use self::datum::{Datum, take_counted, take_long};
use self::schema::Schema;
use crate::bytes::{ReadAt, ReadError, SharedBytes};
use crate::row::BadRow;
use crate::strict;
use crate::sync::{MARKER_BYTES, SEARCH_BYTES, TOO_SHORT, find_marker, magic, read_header};

const MAGIC: &[u8; 4] = b"Obj\x01";
/// Two integers of at most ten bytes.
const BLOCK_HEADER_BYTES: usize = 20;
/// Distance from the first block up to which all blocks before a split are followed.
const FOLLOWED_BYTES: u64 = 4 << 20;
/// Maximum zero-size rows of a block.
const EMPTY_ROWS_MAX: u64 = 1 << 32;
/// Approximate memory of a zero-size value.
const EMPTY_VALUE_BYTES: u64 = 64;

/// The rows of the blocks of a container file whose markers begin in a range.
pub struct AvroFile {
    bytes: SharedBytes,
    length: u64,
    range: Range<u64>,
    memory: usize,
    marker: [u8; MARKER_BYTES],
    schema: Schema,
    codec: Codec,
    /// Offset of the marker before the next block; the end of the range if there is none.
    next: u64,
    /// Rows to skip.
    skipped: u64,
    /// Content of the current block.
    content: Vec<u8>,
}

/// The rows of one block.
pub struct Rows<'f> {
    schema: &'f Schema,
    rest: &'f [u8],
    /// Offset of the marker before the block.
    at: u64,
    left: u64,
    empty_max: u64,
}

struct BlockHeader {
    rows: u64,
    /// Offset of the content.
    content: u64,
    bytes: usize,
}

/// Rejects files without the magic of Avro.
pub fn check(bytes: &dyn ReadAt) -> Result<(), ReadError> {
    match magic(bytes)? {
        None => Ok(()),
        Some(magic) if magic == *MAGIC => Ok(()),
        Some(_) => Err(ReadError::damaged(0, "not an Avro container file")),
    }
}

impl AvroFile {
    /// Opens the blocks whose markers are in `range` of a file of `length` bytes and skips `skipped` rows. A
    /// block, and the header, may have `memory` bytes.
    pub fn open(
        bytes: SharedBytes,
        length: u64,
        range: Range<u64>,
        skipped: u64,
        memory: usize,
    ) -> Result<Self, ReadError> {
        check(&*bytes)?;
        let mut file = AvroFile {
            bytes,
            length,
            next: range.end,
            range,
            memory,
            marker: [0; MARKER_BYTES],
            schema: Schema::null(),
            codec: Codec::Null,
            skipped,
            content: Vec::new(),
        };
        if length > 0 {
            let read = |at, wanted| file.read(at, wanted);
            let header = read_header(length, memory, read, Header::parse)?;
            file.schema = header.schema;
            file.codec = header.codec;
            file.marker = header.marker;
            file.next = file.first_block(header.marker_at)?;
        }
        Ok(file)
    }

    /// Returns the marker before the first block of the range, or the end of the range. `first` is the first
    /// marker of the file.
    ///
    /// A value may contain the bytes of the marker.
    fn first_block(&self, first: u64) -> Result<u64, ReadError> {
        let mut from = first.max(self.range.start);
        let read = |at, wanted| self.read(at, wanted);
        while let Some(found) = find_marker(&self.marker, from..self.range.end, read)? {
            if self.is_between_blocks(found, first)? {
                return Ok(found);
            }
            from = found + 1;
        }
        Ok(self.range.end)
    }

    /// Returns whether the marker at `at` separates blocks. If the marker before it begins a block that ends
    /// here, it does; otherwise all blocks from the first one on are followed.
    fn is_between_blocks(&self, at: u64, first: u64) -> Result<bool, ReadError> {
        if at == first {
            return Ok(true);
        }
        if at - first > FOLLOWED_BYTES
            && let Some(before) = self.marker_before(at, first)?
            && self.block_end(before)? == Some(at)
        {
            return Ok(true);
        }
        let mut end = first;
        while end < at {
            // The task that reads a damaged block reports it.
            let Some(next) = self.block_end(end)? else {
                return Ok(true);
            };
            end = next;
        }
        Ok(end == at)
    }

    /// Returns the last marker before `at`.
    fn marker_before(&self, at: u64, first: u64) -> Result<Option<u64>, ReadError> {
        let finder = FinderRev::new(&self.marker);
        // Markers do not overlap: blocks have at least two bytes.
        let mut end = at;
        while end > first {
            let start = end.saturating_sub(SEARCH_BYTES as u64).max(first);
            let wanted = (end - start) as usize + MARKER_BYTES - 1;
            let bytes = self.read(start, wanted.min((at - start) as usize))?;
            if let Some(found) = finder.rfind(&bytes) {
                return Ok(Some(start + found as u64));
            }
            end = start;
        }
        Ok(None)
    }

    /// Returns the marker that ends the block after the marker at `at`; `None` if there is no valid block.
    fn block_end(&self, at: u64) -> Result<Option<u64>, ReadError> {
        let header = match self.block_header(at + MARKER_BYTES as u64) {
            Ok(Some(header)) => header,
            Ok(None) | Err(ReadError::Damaged { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let end = header.content + header.bytes as u64;
        let marker = self.read(end, MARKER_BYTES)?;
        Ok((marker == self.marker).then_some(end))
    }

    /// Returns the stored bytes of the range up to the end of the current block.
    pub fn consumed(&self) -> u64 {
        self.next.clamp(self.range.start, self.range.end) - self.range.start
    }

    fn read(&self, at: u64, wanted: usize) -> Result<Vec<u8>, ReadError> {
        let held = usize::try_from(self.length.saturating_sub(at))
            .unwrap_or(usize::MAX)
            .min(wanted);
        let mut bytes = vec![0; held];
        let read = self.bytes.read_exact_at(&mut bytes, at);
        read.map_err(|error| ReadError::of_read(self.length, at, error))?;
        Ok(bytes)
    }

    /// Returns `None` at the end of the file.
    fn block_header(&self, at: u64) -> Result<Option<BlockHeader>, ReadError> {
        let bytes = self.read(at, BLOCK_HEADER_BYTES)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let mut rest = &bytes[..];
        let rows = take_long(&mut rest);
        let length = take_long(&mut rest);
        let (Some(rows), Some(length)) = (rows, length) else {
            return Err(ReadError::damaged(self.length, TOO_SHORT));
        };
        let content = at + (bytes.len() - rest.len()) as u64;
        let (Ok(rows), Ok(stored)) = (u64::try_from(rows), u64::try_from(length)) else {
            let reason = format!("it is damaged: a block of {rows} rows in {length} bytes");
            return Err(ReadError::damaged(at, reason));
        };
        let end = content
            .saturating_add(stored)
            .saturating_add(MARKER_BYTES as u64);
        match usize::try_from(stored) {
            Ok(bytes) if end <= self.length => Ok(Some(BlockHeader {
                rows,
                content,
                bytes,
            })),
            _ => Err(ReadError::damaged(self.length, TOO_SHORT)),
        }
    }

    /// Reads the next block with rows that are not skipped.
    pub fn next_block(&mut self) -> Result<Option<Rows<'_>>, ReadError> {
        while self.next < self.range.end {
            let Some(header) = self.block_header(self.next + MARKER_BYTES as u64)? else {
                break;
            };
            let at = self.next;
            let end = header.content + header.bytes as u64;
            if self.read(end, MARKER_BYTES)? != self.marker {
                let reason = "it is damaged: a block does not end with the sync marker of the file";
                return Err(ReadError::damaged(at, reason));
            }
            self.next = end;
            let is_empty = header.rows == 0 && header.bytes == 0;
            if is_empty || (header.rows > 0 && header.rows <= self.skipped) {
                self.skipped -= header.rows;
                continue;
            }
            self.read_content(at, &header)?;
            if header.rows == 0 {
                check_end(at, &self.content)?;
                continue;
            }
            let passed = std::mem::take(&mut self.skipped);
            let mut rows = Rows {
                schema: &self.schema,
                rest: &self.content,
                at,
                left: header.rows,
                empty_max: self.memory as u64 / EMPTY_VALUE_BYTES,
            };
            for _ in 0..passed {
                rows.pass()?;
            }
            return Ok(Some(rows));
        }
        self.next = self.range.end;
        Ok(None)
    }

    fn read_content(&mut self, at: u64, header: &BlockHeader) -> Result<(), ReadError> {
        if header.bytes > self.memory {
            return Err(ReadError::TooLarge {
                offset: at,
                what: "a block".to_owned(),
            });
        }
        let stored = self.read(header.content, header.bytes)?;
        let content = self.codec.decompress(stored, self.memory);
        self.content = content.map_err(|error| error.at(at, "a block", ""))?;
        let rows = header.rows;
        let held = self.content.len() as u64;
        if !self.schema.may_be_empty(self.schema.root) && rows > held {
            let reason = format!("it is damaged: a block of {rows} rows in {held} bytes");
            return Err(ReadError::damaged(at, reason));
        }
        if rows > held.max(EMPTY_ROWS_MAX) {
            let reason = format!("a block has {rows} zero-size rows (limit {EMPTY_ROWS_MAX})");
            return Err(ReadError::damaged(at, reason));
        }
        Ok(())
    }
}

/// Rejects a block, whose marker is at `at`, that continues after its rows.
fn check_end(at: u64, rest: &[u8]) -> Result<(), ReadError> {
    if rest.is_empty() {
        return Ok(());
    }
    let reason = format!(
        "it is damaged: a block has {} bytes after its rows",
        rest.len()
    );
    Err(ReadError::damaged(at, reason))
}

/// The header of a file.
struct Header {
    schema: Schema,
    codec: Codec,
    marker: [u8; MARKER_BYTES],
    /// Offset of the marker.
    marker_at: u64,
}

impl Header {
    /// Parses a header after the magic; `None` if the bytes end early.
    fn parse(bytes: &[u8]) -> Option<Result<Header, String>> {
        let mut rest = bytes.get(MAGIC.len()..)?;
        let (schema, codec) = take_metadata(&mut rest)?;
        let (marker, _) = rest.split_first_chunk()?;
        let marker_at = (bytes.len() - rest.len()) as u64;
        let parsed = || {
            let schema = Schema::parse(schema)?;
            let codec = Codec::of(codec)?;
            Ok(Header {
                schema,
                codec,
                marker: *marker,
                marker_at,
            })
        };
        Some(parsed())
    }
}

/// Returns schema and codec of a header; `None` if it is truncated.
fn take_metadata<'b>(bytes: &mut &'b [u8]) -> Option<(&'b [u8], &'b [u8])> {
    let mut schema = &b""[..];
    let mut codec = &b"null"[..];
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

impl<'f> Rows<'f> {
    /// Returns the next row; `None` after the last one.
    #[allow(
        clippy::should_implement_trait,
        reason = "each row may be of another type"
    )]
    pub fn next<T: Deserialize<'f>>(&mut self) -> Result<Option<Result<T, BadRow>>, ReadError> {
        if self.left == 0 {
            check_end(self.at, self.rest)?;
            return Ok(None);
        }
        let begin = self.rest;
        match strict::deserialize(Datum::new(self.schema, &mut self.rest, &mut {
            self.empty_max
        })) {
            Ok(row) => {
                self.left -= 1;
                Ok(Some(Ok(row)))
            }
            Err(error) => {
                // A row of another type ends where the schema says; invalid bytes have no such end.
                let mut copy = begin;
                let mut empty_left = self.empty_max;
                let shown = Datum::new(self.schema, &mut copy, &mut empty_left);
                let shown = serde_json::Value::deserialize(shown).map(|row| row.to_string());
                self.rest = begin;
                self.pass()?;
                Ok(Some(Err(BadRow {
                    row: shown.unwrap_or_default(),
                    reason: error.to_string(),
                })))
            }
        }
    }

    /// Skips a row.
    fn pass(&mut self) -> Result<(), ReadError> {
        let mut empty_left = self.empty_max;
        let passed =
            IgnoredAny::deserialize(Datum::new(self.schema, &mut self.rest, &mut empty_left));
        passed.map_err(|error| {
            ReadError::damaged(self.at, format!("a row cannot be read: {error}"))
        })?;
        self.left -= 1;
        Ok(())
    }
}
