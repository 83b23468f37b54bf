//! What every decompression is to a source, and which blocks of a compressed file belong to a split.
//!
//! Owns that seam. Does not own any compression.

use super::source::Trouble;
use super::{Compression, Split};

/// What is wrong with data that were cut off, in any compression.
pub(super) const TOO_SHORT: &str = "ends too early; the file is incomplete";

/// Frames of zstd and of lz4 with a magic number between these carry no data of the file.
pub(super) const SKIPPABLE_MAGIC: std::ops::RangeInclusive<u32> = 0x184D_2A50..=0x184D_2A5F;

/// Whether the next `bytes` of a file begin with one of these magic numbers, or end within one.
pub(super) fn begins_with_any(bytes: &[u8], mut magic: impl Iterator<Item = u32>) -> bool {
    let first = &bytes[..bytes.len().min(4)];
    magic.any(|number| number.to_le_bytes().starts_with(first))
}

/// The error for a byte at which no frame begins.
pub(super) fn no_frame(compression: Compression, offset: u64) -> Trouble {
    let reason = match offset {
        0 => format!("is not valid (it does not begin as {compression} data)"),
        _ => "is not valid (no frame begins there)".to_owned(),
    };
    Trouble::Damaged { compression, offset, reason }
}

/// The decompressed bytes of a compressed file, or of the blocks that belong to a split.
pub(super) trait Decoder {
    /// Reads at most `into.len()` bytes, at least one unless there are no more.
    fn read(&mut self, into: &mut [u8]) -> Result<usize, Trouble>;

    /// Compressed bytes of the file taken so far.
    fn position(&self) -> u64;

    /// What was ignored at the end of the file: once, when the end was reached.
    fn take_garbage(&mut self) -> Option<Garbage> {
        None
    }

    /// The blocks of the split; `None` where it is the whole file.
    fn blocks(&self) -> Option<&SplitBlocks> {
        None
    }
}

/// Bytes behind compressed data that are neither padding nor more of it.
#[derive(Clone, Copy)]
pub(super) struct Garbage {
    /// Where they begin.
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

/// Which blocks are those of a split. A block belongs to the split that holds its first byte; a reader goes
/// on behind that for the rest of its last record.
pub(super) struct SplitBlocks {
    /// Whether the first byte of the file is the first one that is read, or would be if there were one.
    pub(super) starts_file: bool,
    /// Blocks from here on belong to the next split, in compressed bytes.
    limit: u64,
    produced: u64,
    /// How many bytes were read before the first block of the next split, once that is known.
    pub(super) end: Option<u64>,
}

impl SplitBlocks {
    pub(super) fn of(split: &Split, starts_file: bool) -> Self {
        SplitBlocks { starts_file, limit: split.end(), produced: 0, end: None }
    }

    /// A block begins in this byte of the file.
    pub(super) fn begin(&mut self, at: u64) {
        if at >= self.limit {
            self.end.get_or_insert(self.produced);
        }
    }

    /// So many more bytes were read.
    pub(super) fn read(&mut self, bytes: usize) {
        self.produced += bytes as u64;
    }
}
