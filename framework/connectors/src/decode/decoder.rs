//! The base of all decoders: their trait, buffered stored bytes, and the assignment of blocks to splits.

use std::fmt::Display;
use std::io::{self, BufRead, Read};
use std::ops::Range;

use crate::bytes::{ReadError, StoredFile};

/// The reason for truncated data.
pub(crate) const TOO_SHORT: &str = "ends early; the file is incomplete";

/// Returns whether the next `bytes` begin with one of these magic numbers, or end inside one.
pub(crate) fn begins_with_any(bytes: &[u8], mut magic: impl Iterator<Item = u32>) -> bool {
    let first = &bytes[..bytes.len().min(4)];
    magic.any(|number| number.to_le_bytes().starts_with(first))
}

/// The error for a byte at which no frame begins.
pub(crate) fn no_frame(name: &str, offset: u64) -> ReadError {
    let reason = match offset {
        0 => format!("is not valid ({name} header expected)"),
        _ => "is not valid (no frame there)".to_owned(),
    };
    ReadError::Damaged { offset, reason }
}

/// The decompressed bytes of a compressed file, or of the blocks that belong to a split.
pub trait Decoder {
    /// Reads at most `into.len()` bytes, at least one unless there are no more.
    fn read(&mut self, into: &mut [u8]) -> Result<usize, ReadError>;

    /// Compressed bytes of the file taken so far.
    fn position(&self) -> u64;

    /// Ignored bytes at the end of the file; set once, at the end.
    fn take_garbage(&mut self) -> Option<Garbage> {
        None
    }

    /// The blocks of the split; `None` where it is the whole file.
    fn blocks(&self) -> Option<&SplitBlocks> {
        None
    }
}

/// Trailing bytes after compressed data that are neither padding nor compressed data.
#[derive(Debug, Clone, Copy)]
pub struct Garbage {
    /// Their offset.
    pub offset: u64,
    /// Their number.
    pub bytes: u64,
}

/// The blocks of a split. A block belongs to the split with its first byte; a reader continues beyond the
/// split to the end of its last record.
pub struct SplitBlocks {
    /// Whether the split begins at the start of the file.
    pub starts_file: bool,
    /// End of the split, in compressed bytes.
    limit: u64,
    produced: u64,
    /// Decompressed bytes before the first block of the next split, once known.
    pub end: Option<u64>,
}

impl SplitBlocks {
    pub(crate) fn of(range: &Range<u64>, starts_file: bool) -> Self {
        SplitBlocks {
            starts_file,
            limit: range.end,
            produced: 0,
            end: None,
        }
    }

    /// Registers a block that begins at this byte of the file.
    pub(crate) fn begin(&mut self, at: u64) {
        if at >= self.limit {
            self.end.get_or_insert(self.produced);
        }
    }

    /// Counts decompressed bytes.
    pub(crate) fn read(&mut self, bytes: usize) {
        self.produced += bytes as u64;
    }
}

const BUFFER_BYTES: usize = 64 << 10;

/// A buffered stored file.
pub(crate) struct Stored {
    file: StoredFile,
    buffer: Vec<u8>,
    taken: usize,
    filled: usize,
    ended: bool,
    starved: bool,
    trouble: Option<ReadError>,
}

impl Stored {
    pub(crate) fn new(file: StoredFile) -> Self {
        Stored {
            file,
            buffer: vec![0; BUFFER_BYTES],
            taken: 0,
            filled: 0,
            ended: false,
            starved: false,
            trouble: None,
        }
    }

    /// Returns the file for another decoder.
    #[cfg(feature = "xz")]
    pub(crate) fn into_file(self) -> StoredFile {
        self.file
    }

    /// Returns the number of bytes that the decoder took.
    pub(crate) fn position(&self) -> u64 {
        self.file.position() - (self.filled - self.taken) as u64
    }

    /// Returns whether a decoder asked for more bytes than there are.
    #[cfg(feature = "lz4")]
    pub(crate) fn is_starved(&self) -> bool {
        self.starved
    }

    /// Returns whether all bytes were taken.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.ended && self.taken == self.filled
    }

    /// Converts the error of a decoder, or returns the error of the file that caused it.
    #[cold]
    pub(crate) fn failed(&mut self, error: &impl Display, is_cut_off: bool) -> ReadError {
        self.trouble.take().unwrap_or_else(|| {
            let reason = if is_cut_off {
                TOO_SHORT.to_owned()
            } else {
                format!("is not valid ({error})")
            };
            self.damaged(reason)
        })
    }

    /// Creates an error at the current position.
    #[cold]
    pub(crate) fn damaged(&self, reason: String) -> ReadError {
        ReadError::Damaged {
            offset: self.position(),
            reason,
        }
    }

    /// Returns the next bytes: at least `wanted` unless the file ends.
    pub(crate) fn peek(&mut self, wanted: usize) -> Result<&[u8], ReadError> {
        while self.filled - self.taken < wanted && !self.ended {
            self.buffer.copy_within(self.taken..self.filled, 0);
            self.filled -= self.taken;
            self.taken = 0;
            let read = self.file.read(&mut self.buffer[self.filled..])?;
            self.filled += read;
            self.ended = read == 0;
        }
        Ok(&self.buffer[self.taken..self.filled])
    }

    /// Takes at most `bytes` bytes; returns their number.
    pub(crate) fn skip(&mut self, bytes: u64) -> Result<u64, ReadError> {
        let mut skipped = 0;
        while skipped < bytes {
            let left = usize::try_from(bytes - skipped).unwrap_or(usize::MAX);
            let step = self.peek(1)?.len().min(left);
            if step == 0 {
                break;
            }
            self.taken += step;
            skipped += step as u64;
        }
        Ok(skipped)
    }
}

impl Stored {
    /// As [`peek`](Stored::peek), for a reader; [`failed`](Stored::failed) returns the error.
    pub(crate) fn fill(&mut self, wanted: usize) -> io::Result<&[u8]> {
        if let Err(trouble) = self.peek(wanted) {
            self.trouble = Some(trouble);
            return Err(io::Error::other("the file cannot be read"));
        }
        Ok(&self.buffer[self.taken..self.filled])
    }
}

impl BufRead for Stored {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.fill(1)
    }

    fn consume(&mut self, bytes: usize) {
        self.taken += bytes;
    }
}

impl Read for Stored {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let read = available.len().min(into.len());
        let starved = read == 0 && !into.is_empty();
        into[..read].copy_from_slice(&available[..read]);
        self.consume(read);
        self.starved |= starved;
        Ok(read)
    }
}
