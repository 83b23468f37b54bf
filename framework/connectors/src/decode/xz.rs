//! Xz input, also of splits: the index at the end of each stream locates the blocks.
//!
//! Each block is decompressed as its own stream, since `lzma-rust2` does not expose the index.

use std::io::{self, Cursor, ErrorKind, Read};
use std::ops::Range;

use lzma_rust2::XzReader;

use super::decoder::{Decoder, SplitBlocks, Stored, TOO_SHORT};
use crate::bytes::{ReadError, StoredFile};

const HEADER_BYTES: u64 = 12;
const FOOTER_BYTES: u64 = 12;
const HEADER_MAGIC: &[u8] = b"\xfd7zXZ\0";
const FOOTER_MAGIC: &[u8] = b"YZ";
/// Memory that a decoder may always use, in bytes: that of `xz -6`.
const MEMORY_ALWAYS: u64 = 16 << 20;
const LZMA2: u64 = 0x21;
/// Bytes of padding read at a time.
const PADDING_BYTES: u64 = 4 << 10;
/// Bytes searched for a misplaced end of a stream.
const SEARCHED_BYTES: u64 = 4 << 20;

/// Creates a decoder for any number of streams, with dictionaries of up to `memory` bytes or the usual size.
#[cfg(feature = "avro")]
pub(crate) fn in_memory(stored: &[u8], memory: usize) -> XzReader<&[u8]> {
    XzReader::new_mem_limit(stored, true, decoder_memory(memory))
}

/// The memory of a decoder, in KiB.
fn decoder_memory(memory: usize) -> u32 {
    u32::try_from((memory as u64).max(MEMORY_ALWAYS) >> 10).unwrap_or(u32::MAX)
}

#[derive(Debug, Clone, Copy)]
struct Block {
    at: u64,
    /// Length without padding.
    unpadded: u64,
    uncompressed: u64,
    /// The stream flags, which select the checksum.
    flags: [u8; 2],
}

impl Block {
    fn padded(&self) -> u64 {
        self.unpadded.next_multiple_of(4)
    }
}

/// The decompressed bytes of the blocks of a split and beyond.
pub(crate) struct XzStream {
    /// The file, between two blocks.
    between: Option<StoredFile>,
    /// Remaining blocks in reverse order.
    blocks: Vec<Block>,
    block: Option<XzReader<StandAlone>>,
    /// Memory of a decoder, in KiB.
    memory: u32,
    of_split: SplitBlocks,
    position: u64,
}

impl XzStream {
    pub(crate) fn open(
        mut file: StoredFile,
        range: &Range<u64>,
        memory: usize,
    ) -> Result<Self, ReadError> {
        let mut blocks = read_blocks(&mut file)?;
        let first = blocks.first().map(|block| block.at);
        blocks.retain(|block| block.at >= range.start);
        let starts_file = first.map_or(range.start == 0, |first| {
            (range.start..range.end).contains(&first)
        });
        if blocks.first().is_some_and(|block| block.at >= range.end) {
            blocks.clear();
        }
        blocks.reverse();
        let memory = decoder_memory(memory);
        let of_split = SplitBlocks::of(range, starts_file);
        let position = range.start;
        Ok(XzStream {
            between: Some(file),
            blocks,
            block: None,
            memory,
            of_split,
            position,
        })
    }

    /// Starts the next block; returns false at the end of the file.
    fn begin(&mut self) -> Result<bool, ReadError> {
        let Some(block) = self.blocks.pop() else {
            self.position = u64::MAX;
            return Ok(false);
        };
        let Some(mut file) = self.between.take() else {
            return Ok(false);
        };
        self.of_split.begin(block.at);
        self.position = block.at + block.padded();
        check_memory(&mut file, &block, self.memory)?;
        file.seek(block.at);
        self.block = Some(XzReader::new_mem_limit(
            StandAlone::new(Stored::new(file), &block),
            false,
            self.memory,
        ));
        Ok(true)
    }
}

impl Decoder for XzStream {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, ReadError> {
        loop {
            let Some(reader) = &mut self.block else {
                if !self.begin()? {
                    return Ok(0);
                }
                continue;
            };
            match reader.read(into) {
                Ok(0) if !into.is_empty() => {
                    let ended = self.block.take().map(XzReader::into_inner);
                    self.between = ended.map(|block| block.stored.into_file());
                }
                Ok(read) => {
                    self.of_split.read(read);
                    return Ok(read);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let stored = &mut reader.inner_mut().stored;
                    return Err(stored.failed(&error, false));
                }
            }
        }
    }

    fn position(&self) -> u64 {
        self.position
    }

    fn blocks(&self) -> Option<&SplitBlocks> {
        Some(&self.of_split)
    }
}

/// A block with the header and end that make it a stream.
struct StandAlone {
    header: Cursor<Vec<u8>>,
    stored: Stored,
    left: u64,
    footer: Cursor<Vec<u8>>,
}

impl StandAlone {
    fn new(stored: Stored, block: &Block) -> Self {
        let mut header = HEADER_MAGIC.to_vec();
        header.extend_from_slice(&block.flags);
        header.extend_from_slice(&crc32(&block.flags));
        let mut index = vec![0, 1];
        write_number(block.unpadded, &mut index);
        write_number(block.uncompressed, &mut index);
        index.resize(index.len().next_multiple_of(4), 0);
        let sum = crc32(&index);
        index.extend_from_slice(&sum);
        let mut sized = (index.len() as u32 / 4 - 1).to_le_bytes().to_vec();
        sized.extend_from_slice(&block.flags);
        index.extend_from_slice(&crc32(&sized));
        index.extend_from_slice(&sized);
        index.extend_from_slice(FOOTER_MAGIC);
        let left = block.padded();
        StandAlone {
            header: Cursor::new(header),
            stored,
            left,
            footer: Cursor::new(index),
        }
    }
}

impl Read for StandAlone {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.header.read(into)?;
        if read > 0 {
            return Ok(read);
        }
        if self.left > 0 {
            let wanted = usize::try_from(self.left)
                .unwrap_or(usize::MAX)
                .min(into.len());
            let read = self.stored.read(&mut into[..wanted])?;
            self.left -= read as u64;
            return Ok(read);
        }
        self.footer.read(into)
    }
}

fn crc32(bytes: &[u8]) -> [u8; 4] {
    crc32fast::hash(bytes).to_le_bytes()
}

fn write_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes a variable-length integer of at most nine bytes.
fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..63).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cold]
fn damaged(offset: u64, reason: &str) -> ReadError {
    ReadError::Damaged {
        offset,
        reason: reason.to_owned(),
    }
}

/// Finds all blocks of all streams, from the end of the file.
fn read_blocks(file: &mut StoredFile) -> Result<Vec<Block>, ReadError> {
    let mut end = file.length();
    let mut first = [0; HEADER_MAGIC.len()];
    if end >= HEADER_BYTES {
        file.read_exact_at(&mut first, 0)?;
    }
    if first != HEADER_MAGIC {
        let start = first.len().min(end as usize);
        file.read_exact_at(&mut first[..start], 0)?;
        let cut = HEADER_MAGIC.starts_with(&first[..start]);
        return Err(if cut {
            damaged(end, TOO_SHORT)
        } else {
            damaged(0, "is not valid (xz header expected)")
        });
    }
    let mut streams = Vec::new();
    loop {
        end -= padding_before(file, end)?;
        if end == 0 {
            break;
        }
        let blocks = read_stream(file, &mut end, streams.is_empty())?;
        streams.push(blocks);
    }
    Ok(streams.into_iter().rev().flatten().collect())
}

/// Returns the number of zeros before `end` that are padding. Streams and padding are multiples of four bytes.
fn padding_before(file: &mut StoredFile, end: u64) -> Result<u64, ReadError> {
    let mut start = end;
    loop {
        let length = start.min(PADDING_BYTES) / 4 * 4;
        let mut bytes = vec![0; length as usize];
        file.read_exact_at(&mut bytes, start - length)?;
        let zeros = zeros_at_end(&bytes) as u64;
        start -= zeros;
        if zeros < length || length == 0 {
            return Ok(end - start);
        }
    }
}

/// Returns the number of zeros at the end, in multiples of four. Compares many bytes at a time while all are zero.
fn zeros_at_end(bytes: &[u8]) -> usize {
    let zeros = [0; 512];
    let mut end = bytes.len();
    while bytes[..end].ends_with(&zeros) {
        end -= zeros.len();
    }
    while bytes[..end].ends_with(&[0; 4]) {
        end -= 4;
    }
    bytes.len() - end
}

fn is_footer(footer: &[u8]) -> bool {
    footer[10..] == *FOOTER_MAGIC && footer[..4] == crc32(&footer[4..10])
}

/// Explains a missing end of a stream at `end`: truncation, or trailing data.
#[cold]
fn no_stream_ends(file: &mut StoredFile, end: u64, is_last: bool) -> Result<ReadError, ReadError> {
    let length = file.length();
    let from = end.saturating_sub(SEARCHED_BYTES);
    let mut bytes = vec![0; (end - from) as usize];
    file.read_exact_at(&mut bytes, from)?;
    let Some(footer) = bytes.windows(FOOTER_BYTES as usize).rposition(is_footer) else {
        let reason = "ends early, or more than 4 MiB of other data follow";
        return Ok(damaged(length, if from == 0 { TOO_SHORT } else { reason }));
    };
    let behind = &bytes[footer + FOOTER_BYTES as usize..];
    let padding = 4 * behind.chunks(4).take_while(|four| **four == [0; 4]).count();
    let next = &behind[padding..];
    let is_cut_off = is_last && (next.starts_with(HEADER_MAGIC) || HEADER_MAGIC.starts_with(next));
    if is_cut_off {
        return Ok(damaged(length, TOO_SHORT));
    }
    let reason = format!(
        "is not valid (no stream there, and {} bytes follow)",
        next.len()
    );
    Ok(damaged(end - next.len() as u64, &reason))
}

/// Returns the blocks of the stream that ends at `end`, and moves `end` to its start.
fn read_stream(
    file: &mut StoredFile,
    end: &mut u64,
    is_last: bool,
) -> Result<Vec<Block>, ReadError> {
    let footer_at = end
        .checked_sub(FOOTER_BYTES)
        .filter(|at| *at >= HEADER_BYTES);
    let mut footer = [0; FOOTER_BYTES as usize];
    if let Some(at) = footer_at {
        file.read_exact_at(&mut footer, at)?;
    }
    let Some(footer_at) = footer_at.filter(|_| is_footer(&footer)) else {
        return Err(no_stream_ends(file, *end, is_last)?);
    };
    let [.., size0, size1, size2, size3, flags0, flags1, _, _] = footer;
    let index_bytes = (u64::from(u32::from_le_bytes([size0, size1, size2, size3])) + 1) * 4;
    let flags = [flags0, flags1];
    let index_at = footer_at
        .checked_sub(index_bytes)
        .filter(|at| *at >= HEADER_BYTES)
        .ok_or_else(|| {
            damaged(
                footer_at,
                "is not valid (its index is larger than the file)",
            )
        })?;
    let mut index = vec![0; index_bytes as usize];
    file.read_exact_at(&mut index, index_at)?;
    let bad_index = || damaged(index_at, "is not valid (its index is damaged)");
    let (records, sum) = index.split_at(index.len() - 4);
    let mut rest = records.get(1..).unwrap_or_default();
    let valid = sum == crc32(records) && records.first() == Some(&0);
    let count = take_number(&mut rest)
        .filter(|_| valid)
        .ok_or_else(bad_index)?;
    let mut blocks = Vec::new();
    let mut stored = 0u64;
    for _ in 0..count {
        let unpadded = take_number(&mut rest)
            .filter(|unpadded| *unpadded >= 5)
            .ok_or_else(bad_index)?;
        let uncompressed = take_number(&mut rest).ok_or_else(bad_index)?;
        let block = Block {
            at: stored,
            unpadded,
            uncompressed,
            flags,
        };
        stored = stored
            .checked_add(block.padded())
            .filter(|sum| *sum <= index_at)
            .ok_or_else(bad_index)?;
        blocks.push(block);
    }
    let start = index_at
        .checked_sub(stored + HEADER_BYTES)
        .ok_or_else(bad_index)?;
    let mut header = [0; HEADER_BYTES as usize];
    file.read_exact_at(&mut header, start)?;
    if &header[..6] != HEADER_MAGIC || header[6..8] != flags || header[8..] != crc32(&flags) {
        return Err(damaged(
            start,
            "is not valid (no stream at the start given by its footer)",
        ));
    }
    for block in &mut blocks {
        block.at += start + HEADER_BYTES;
    }
    *end = start;
    Ok(blocks)
}

/// Rejects a block whose decoder needs more memory.
fn check_memory(file: &mut StoredFile, block: &Block, memory: u32) -> Result<(), ReadError> {
    let mut header = vec![0; usize::try_from(block.unpadded.min(1024)).unwrap_or(1024)];
    file.read_exact_at(&mut header, block.at)?;
    let Some(window) = dictionary_bytes(&header) else {
        return Ok(());
    };
    if window >> 10 > u64::from(memory) {
        return Err(ReadError::WindowTooLarge { window });
    }
    Ok(())
}

/// Returns the dictionary size of an lzma2 block; `None` for an invalid header, which the decoder rejects.
fn dictionary_bytes(header: &[u8]) -> Option<u64> {
    let (&[_, flags], mut rest) = header.split_first_chunk::<2>()?;
    for present in [0x40, 0x80] {
        if flags & present != 0 {
            take_number(&mut rest)?;
        }
    }
    for _ in 0..=flags & 3 {
        let id = take_number(&mut rest)?;
        let size = usize::try_from(take_number(&mut rest)?).ok()?;
        let (properties, after) = rest.split_at_checked(size)?;
        if id == LZMA2 {
            let bits = u32::from(*properties.first()?);
            return (bits <= 40).then(|| (2 | u64::from(bits & 1)) << (bits / 2 + 11));
        }
        rest = after;
    }
    None
}

/// Returns whether several readers can share the file.
pub(crate) fn has_several_blocks(mut file: StoredFile) -> bool {
    read_blocks(&mut file).is_ok_and(|blocks| blocks.len() > 1)
}
