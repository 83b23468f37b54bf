//! Hadoop's SequenceFiles: pairs of key and value, as the bytes that Hadoop's types write.

mod codec;
mod header;

use std::cell::RefCell;
use std::ops::Range;

pub use self::header::take_number;
use self::header::{Header, Layout, MAGIC};
use crate::bytes::{ReadAt, ReadError, SharedBytes};
use crate::sync::{MARKER_BYTES, SEARCH_BYTES, TOO_SHORT, find_marker, magic, read_header};

const LENGTH_BYTES: usize = 4;
/// A length of -1, which precedes a marker.
const ESCAPE: [u8; LENGTH_BYTES] = [0xff; LENGTH_BYTES];
const RECORD: &str = "a record or a block";

/// The records of a file after the markers that begin in a range.
pub struct SequenceFile {
    container: Container,
    layout: Layout,
    /// The classes of keys and values; `None` in an empty file.
    classes: Option<(String, String)>,
    range: Range<u64>,
    /// Offset of the next record, or of the escape before a marker.
    next: u64,
    ended: bool,
    /// Whether a block without its marker begins at `next`.
    begun: bool,
    /// Records to skip.
    skipped: u64,
    block: Block,
    current: Current,
}

/// A record.
pub struct Record<'f> {
    /// Its offset, or that of its block.
    pub at: u64,
    /// The key in the encoding of its class.
    pub key: &'f [u8],
    /// The value in the encoding of its class.
    pub value: &'f [u8],
}

/// The file: reads of bytes, header and markers.
struct Container {
    bytes: SharedBytes,
    length: u64,
    memory: usize,
    marker: [u8; MARKER_BYTES],
    /// The last read bytes and their offset.
    held: RefCell<(u64, Vec<u8>)>,
}

/// A block of records: the lengths of keys, keys, the lengths of values, values.
#[derive(Default)]
struct Block {
    at: u64,
    parts: [Vec<u8>; 4],
    /// Bytes taken from each part.
    taken: [usize; 4],
    /// Records of the block, in total and remaining.
    count: i64,
    left: i64,
}

/// The position of the current record.
#[derive(Default)]
struct Current {
    at: u64,
    /// Without blocks: the stored key and value, and the decompressed value.
    stored: Vec<u8>,
    content: Vec<u8>,
    key: Range<usize>,
    value: Range<usize>,
}

/// Rejects files without the magic of SequenceFiles.
pub fn check(bytes: &dyn ReadAt) -> Result<(), ReadError> {
    match magic(bytes)? {
        None => Ok(()),
        Some(magic) if magic == *MAGIC => Ok(()),
        Some([b'S', b'E', b'Q', version]) => {
            let reason = format!(
                "it is a SequenceFile of version {version}, but this program reads version 6"
            );
            Err(ReadError::damaged(0, reason))
        }
        Some(_) => Err(ReadError::damaged(0, "not a SequenceFile")),
    }
}

impl Container {
    /// Returns at most `wanted` bytes at `at`.
    fn peek(&self, at: u64, wanted: usize) -> Result<Vec<u8>, ReadError> {
        let there = usize::try_from(self.length.saturating_sub(at)).unwrap_or(usize::MAX);
        let mut held = self.held.borrow_mut();
        let (begin, bytes) = &mut *held;
        let from = usize::try_from(at.wrapping_sub(*begin)).unwrap_or(usize::MAX);
        if let Some(found) = bytes.get(from..from.saturating_add(wanted.min(there))) {
            return Ok(found.to_vec());
        }
        *begin = at;
        bytes.clear();
        bytes.resize(there.min(wanted.max(SEARCH_BYTES)), 0);
        let read = self.bytes.read_exact_at(bytes, at);
        read.map_err(|error| ReadError::of_read(self.length, at, error))?;
        Ok(bytes[..there.min(wanted)].to_vec())
    }

    /// Returns exactly `wanted` bytes; fails if they exceed the file or the memory.
    fn read(&self, at: u64, wanted: u64) -> Result<Vec<u8>, ReadError> {
        if at.saturating_add(wanted) > self.length {
            return Err(ReadError::damaged(self.length, TOO_SHORT));
        }
        match usize::try_from(wanted) {
            Ok(bytes) if bytes <= self.memory => self.peek(at, bytes),
            _ => Err(ReadError::TooLarge {
                offset: at,
                what: format!("{RECORD} of {wanted} bytes"),
            }),
        }
    }

    /// Reads bytes with a length prefix at `at`, and moves `at` after them.
    fn counted(&self, at: &mut u64) -> Result<Vec<u8>, ReadError> {
        let count = self.number(at)?;
        let damaged = |_| ReadError::damaged(*at, format!("it is damaged: {count} bytes"));
        let count = u64::try_from(count).map_err(damaged)?;
        let bytes = self.read(*at, count)?;
        *at += count;
        Ok(bytes)
    }

    fn number(&self, at: &mut u64) -> Result<i64, ReadError> {
        let bytes = self.peek(*at, 9)?;
        let mut rest = &bytes[..];
        let number =
            take_number(&mut rest).ok_or_else(|| ReadError::damaged(self.length, TOO_SHORT))?;
        *at += (bytes.len() - rest.len()) as u64;
        Ok(number)
    }
}

impl SequenceFile {
    /// Opens the records after the markers in `range` of a file of `length` bytes and skips `skipped` of
    /// them. A record, a block and the header may have `memory` bytes.
    pub fn open(
        bytes: SharedBytes,
        length: u64,
        range: Range<u64>,
        skipped: u64,
        memory: usize,
    ) -> Result<Self, ReadError> {
        check(&*bytes)?;
        let held = RefCell::default();
        let mut container = Container {
            bytes,
            length,
            memory,
            marker: [0; MARKER_BYTES],
            held,
        };
        let mut first = None;
        let mut begun = false;
        let mut layout = Layout::Plain;
        let mut classes = None;
        if length > 0 {
            let read = |at, wanted| container.peek(at, wanted);
            let header = read_header(length, memory, read, Header::parse)?;
            layout = header.layout;
            classes = Some((header.key, header.value));
            let begin = (header.length - MARKER_BYTES) as u64;
            first = find_marker(&header.marker, begin.max(range.start)..range.end, read)?;
            // A value may contain the bytes of the marker. An escape precedes every marker but that of the header.
            while let Some(found) = first.filter(|found| *found > begin) {
                if container.peek(found - LENGTH_BYTES as u64, LENGTH_BYTES)? == ESCAPE {
                    break;
                }
                first = find_marker(&header.marker, found + 1..range.end, read)?;
            }
            container.marker = header.marker;
            begun = matches!(layout, Layout::Blocks(_)) && first != Some(begin);
        }
        Ok(SequenceFile {
            container,
            layout,
            classes,
            next: first.map_or(range.end, |marker| marker + MARKER_BYTES as u64),
            ended: first.is_none(),
            range,
            begun,
            skipped,
            block: Block::default(),
            current: Current::default(),
        })
    }

    /// Returns the classes of keys and values; `None` for an empty file.
    pub fn classes(&self) -> Option<(&str, &str)> {
        self.classes
            .as_ref()
            .map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Returns the stored bytes of the range up to the current position.
    pub fn consumed(&self) -> u64 {
        let at = if self.ended {
            self.range.end
        } else {
            self.next
        };
        at.clamp(self.range.start, self.range.end) - self.range.start
    }

    /// Returns the next record; `None` at the end of the range or of the file.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        loop {
            if self.block.left == 0 && !self.begin_records()? {
                return Ok(None);
            }
            let is_passed = match self.layout {
                Layout::Blocks(_) => self.take_from_block()?,
                Layout::Plain | Layout::Records(_) => self.read_record()?,
            };
            if !is_passed {
                break;
            }
        }
        let Current {
            at,
            stored,
            content,
            key,
            value,
        } = &self.current;
        let (keys, values) = match self.layout {
            Layout::Plain => (stored, stored),
            Layout::Records(_) => (stored, content),
            Layout::Blocks(_) => (&self.block.parts[1], &self.block.parts[3]),
        };
        Ok(Some(Record {
            at: *at,
            key: &keys[key.clone()],
            value: &values[value.clone()],
        }))
    }

    /// Skips a marker, if there is one, and reads the block after it; false at the end of the range or file.
    fn begin_records(&mut self) -> Result<bool, ReadError> {
        let is_blocked = matches!(self.layout, Layout::Blocks(_));
        if std::mem::take(&mut self.begun) && !self.ended {
            self.read_block()?;
        }
        while self.block.left == 0 && !self.ended {
            let first = self.container.peek(self.next, LENGTH_BYTES)?;
            if first.is_empty() {
                self.ended = true;
            } else if first == ESCAPE {
                let marker = self.next + LENGTH_BYTES as u64;
                if self.container.read(marker, MARKER_BYTES as u64)? != self.container.marker {
                    let reason = "it is damaged: a sync marker is missing";
                    return Err(ReadError::damaged(marker, reason));
                }
                self.ended = marker >= self.range.end;
                self.next = marker + MARKER_BYTES as u64;
                if is_blocked && !self.ended {
                    self.read_block()?;
                }
            } else if is_blocked {
                // The first block has its own marker after that of the header.
                return Err(ReadError::damaged(
                    self.next,
                    "it is damaged: a block begins without a sync marker",
                ));
            } else {
                return Ok(true);
            }
        }
        Ok(self.block.left > 0)
    }

    /// Reads one record outside blocks; returns whether it was skipped.
    fn read_record(&mut self) -> Result<bool, ReadError> {
        let at = self.next;
        let lengths = self.container.read(at, 2 * LENGTH_BYTES as u64)?;
        let length = |from: usize| {
            lengths[from..]
                .first_chunk()
                .map_or(0, |bytes| u32::from_be_bytes(*bytes))
        };
        let both = u64::from(length(0));
        let key = length(LENGTH_BYTES) as usize;
        let begin = at + 2 * LENGTH_BYTES as u64;
        if key as u64 > both {
            let reason = format!("it is damaged: a key of {key} bytes in a record of {both}");
            return Err(ReadError::damaged(at, reason));
        }
        self.next = begin.saturating_add(both);
        if self.next > self.container.length {
            return Err(ReadError::damaged(self.container.length, TOO_SHORT));
        }
        if let Some(left) = self.skipped.checked_sub(1) {
            self.skipped = left;
            return Ok(true);
        }
        let stored = self.container.read(begin, both)?;
        let mut value = key..stored.len();
        let mut content = Vec::new();
        if let Layout::Records(codec) = self.layout {
            content = codec
                .decompress(&stored[key..], self.container.memory)
                .map_err(|error| error.at(at, RECORD, ""))?;
            value = 0..content.len();
        }
        self.current = Current {
            at,
            stored,
            content,
            key: 0..key,
            value,
        };
        Ok(false)
    }

    fn read_block(&mut self) -> Result<(), ReadError> {
        let Layout::Blocks(codec) = self.layout else {
            return Ok(());
        };
        let at = self.next;
        let count = self.container.number(&mut self.next)?;
        let mut block = Block {
            at,
            count,
            left: count.max(0),
            ..Block::default()
        };
        for part in &mut block.parts {
            let stored = self.container.counted(&mut self.next)?;
            let content = codec.decompress(&stored, self.container.memory);
            *part = content.map_err(|error| error.at(at, RECORD, "it is damaged: "))?;
        }
        self.block = block;
        Ok(())
    }

    /// Takes the next record of the block; returns whether it was skipped.
    fn take_from_block(&mut self) -> Result<bool, ReadError> {
        let (Some(key), Some(value)) = (self.block.take(0), self.block.take(2)) else {
            let reason = format!(
                "it is damaged: a block has fewer than its {} records",
                self.block.count
            );
            return Err(ReadError::damaged(self.block.at, reason));
        };
        self.block.left -= 1;
        if let Some(left) = self.skipped.checked_sub(1) {
            self.skipped = left;
            return Ok(true);
        }
        self.current = Current {
            at: self.block.at,
            key,
            value,
            ..Current::default()
        };
        Ok(false)
    }
}

impl Block {
    /// Takes a length from part `lengths`, and that many bytes from the next part.
    fn take(&mut self, lengths: usize) -> Option<Range<usize>> {
        let mut rest = &self.parts[lengths][self.taken[lengths]..];
        let length = usize::try_from(take_number(&mut rest)?).ok()?;
        self.taken[lengths] = self.parts[lengths].len() - rest.len();
        let start = self.taken[lengths + 1];
        let end = start
            .checked_add(length)
            .filter(|end| *end <= self.parts[lengths + 1].len())?;
        self.taken[lengths + 1] = end;
        Some(start..end)
    }
}
