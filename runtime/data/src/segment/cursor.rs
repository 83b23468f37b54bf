//! The cursor over one partition of a segment. The current block is borrowed from the segment's bytes or
//! decompressed into the cursor's buffer.
#![allow(unsafe_code)] // keeps a pointer into bytes that its own handle keeps alive

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use super::error::SegmentError;
use super::format::{BlockEntry, Codec};
use super::read_ahead::ReadAhead;
use super::reader::Segment;
use crate::activity::block_moved;
use crate::record::{Extent, RecordEncoding};
use crate::region::prefetch;

/// A position in a partition, for `Segment::cursor_at`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentPosition {
    /// Block number in the partition, from 0; the number of blocks at the end.
    pub block: u64,
    /// Record number in the partition, from 0; the number of records at the end.
    pub ordinal: u64,
}

/// Reads the records of one partition in order.
#[derive(Debug)]
pub struct Cursor {
    segment: Arc<Segment>,
    encoding: RecordEncoding,
    partition: u32,
    /// The records of the file, as ordinals in the partition.
    pub(crate) ordinals: Range<u64>,
    blocks: Range<u64>,
    /// Index of the block after the current one.
    next_block: u64,
    /// The current block: a part of the segment's bytes or of `buffer`.
    block: NonNull<[u8]>,
    /// The decompressed block; allocated for the first compressed block.
    buffer: Vec<u8>,
    /// Offset of the current record in the block; without one, of the next record.
    start: usize,
    extent: Extent,
    next: usize,
    next_ordinal: u64,
    block_end_ordinal: u64,
    /// Stored bytes of all blocks entered.
    pub(crate) bytes_read: u64,
    read_ahead: ReadAhead,
}

// SAFETY: `block` points into bytes of `segment` or into `buffer`. Both keep their address when the cursor
// moves and are only read through it; nothing is shared with another thread.
unsafe impl Send for Cursor {}

impl Cursor {
    pub(super) fn new(segment: Arc<Segment>, partition: u32) -> Result<Cursor, SegmentError> {
        let (entry, blocks) = segment.blocks(partition)?;
        let first = segment.first_ordinal();
        Ok(Cursor {
            encoding: segment.encoding(),
            partition,
            ordinals: first..first + entry.records,
            next_block: blocks.start,
            blocks,
            block: NonNull::from(&[]),
            buffer: Vec::new(),
            start: 0,
            extent: segment.encoding().extent(),
            next: 0,
            next_ordinal: first,
            block_end_ordinal: first,
            bytes_read: 0,
            read_ahead: ReadAhead::new(entry.offset..entry.offset + entry.stored_len),
            segment,
        })
    }

    /// Moves to the next record; returns `false` after the last one.
    ///
    /// # Errors
    /// `Damaged` if a block does not match its checksum or the index.
    #[inline]
    pub fn advance(&mut self) -> Result<bool, SegmentError> {
        if self.next == self.block.len() && !self.enter_next_block()? {
            return Ok(false);
        }
        let rest = &self.block()[self.next..];
        // A fixed extent was set when the cursor was made: writing it again here slows a merge by a tenth.
        let end = match self.encoding {
            RecordEncoding::Fixed { .. } if rest.len() >= self.extent.end => self.extent.end,
            RecordEncoding::Fixed { .. } => return Err(self.cut_record()),
            RecordEncoding::Variable => {
                let Some(extent) = self.encoding.parse(rest) else {
                    return Err(self.cut_record());
                };
                self.extent = extent;
                extent.end
            }
        };
        self.start = self.next;
        self.next += end;
        self.next_ordinal += 1;
        // A merge returns to this source later: prefetch the record after the next one.
        prefetch(self.block(), self.next + end);
        Ok(true)
    }

    /// Returns the current record's key; `advance` must have returned `true`.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.block()
            .get(self.start + self.extent.key..self.start + self.extent.value)
            .unwrap_or(&[])
    }

    /// Returns the current record's value; `advance` must have returned `true`.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.block()
            .get(self.start + self.extent.value..self.start + self.extent.end)
            .unwrap_or(&[])
    }

    /// Returns the current record as it is stored.
    #[inline]
    pub(crate) fn record(&self) -> &[u8] {
        &self.block()[self.start..self.next]
    }

    /// Returns the position of the current record; before the first `advance`, of the first record.
    pub fn position(&self) -> SegmentPosition {
        if self.next > self.start {
            return self.place(self.next_block - 1, self.next_ordinal - 1);
        }
        self.next_position()
    }

    /// Returns the position of the next record.
    pub(crate) fn next_position(&self) -> SegmentPosition {
        let inside = self.next < self.block.len();
        self.place(self.next_block - u64::from(inside), self.next_ordinal)
    }

    fn place(&self, block: u64, ordinal: u64) -> SegmentPosition {
        SegmentPosition {
            block: block - self.blocks.start + self.segment.first_block(),
            ordinal,
        }
    }

    /// Returns the number of the partition's records that the file holds.
    pub fn records(&self) -> u64 {
        self.ordinals.end - self.ordinals.start
    }

    pub(super) fn seek(&mut self, ordinal: u64) -> Result<(), SegmentError> {
        let Range { start: first, end } = self.ordinals;
        if !(first..=end).contains(&ordinal) {
            return Err(SegmentError::NoRecord {
                path: self.segment.path().to_owned(),
                partition: self.partition,
                ordinal,
                first,
                end,
            });
        }
        if ordinal == end {
            self.next_block = self.blocks.end;
            self.next_ordinal = ordinal;
            self.block_end_ordinal = ordinal;
            return Ok(());
        }
        self.next_block = self.segment.block_of(&self.blocks, ordinal)?;
        self.next_ordinal = self.segment.block(self.next_block)?.first_ordinal;
        self.block_end_ordinal = self.next_ordinal;
        self.enter_next_block()?;
        self.skip_to(ordinal)
    }

    fn skip_to(&mut self, ordinal: u64) -> Result<(), SegmentError> {
        if let Some(stride) = self.encoding.stride() {
            self.next = (ordinal - self.next_ordinal) as usize * stride;
            self.next_ordinal = ordinal;
        }
        while self.next_ordinal < ordinal {
            let Some(extent) = self.encoding.parse(&self.block()[self.next..]) else {
                return Err(self.cut_record());
            };
            self.next += extent.end;
            self.next_ordinal += 1;
        }
        self.start = self.next;
        Ok(())
    }

    #[inline]
    fn block(&self) -> &[u8] {
        // SAFETY: `block` is the empty slice, or part of the bytes of `segment` or of `buffer`, which is only
        // written while a new block is entered. All outlive the borrow of `self`.
        unsafe { self.block.as_ref() }
    }

    /// Moves before the first record of the next block; returns `false` after the last block.
    #[cold]
    #[inline(never)]
    fn enter_next_block(&mut self) -> Result<bool, SegmentError> {
        if self.next_ordinal != self.block_end_ordinal {
            let block = self.next_block.saturating_sub(1);
            let found = self.next_ordinal;
            let expected = self.block_end_ordinal;
            return Err(self.segment.damaged(format!(
                "block {block} ends after record {found} of its partition; expected {expected}"
            )));
        }
        (self.start, self.next) = (0, 0);
        self.block = NonNull::from(&[]);
        if self.next_block == self.blocks.end {
            return Ok(false);
        }
        let index = self.next_block;
        let entry = self.segment.block(index)?;
        let next = if index + 1 < self.blocks.end {
            self.segment.block(index + 1)?.first_ordinal
        } else {
            self.ordinals.end
        };
        self.segment.read_ahead(&mut self.read_ahead, entry.offset);
        let stored = self.segment.stored(index, &entry)?;
        self.bytes_read += entry.stored_len;
        block_moved();
        self.block = match entry.codec {
            Codec::Stored => NonNull::from(stored),
            Codec::Lz4 => NonNull::from(decompress(&mut self.buffer, stored, &entry).map_err(
                |what| {
                    self.segment
                        .damaged(format!("cannot decompress block {index}: {what}"))
                },
            )?),
        };
        self.next_block = index + 1;
        self.block_end_ordinal = next;
        Ok(true)
    }

    #[cold]
    fn cut_record(&self) -> SegmentError {
        let ordinal = self.next_ordinal;
        let block = self.next_block.saturating_sub(1);
        self.segment.damaged(format!(
            "record {ordinal} of partition {} exceeds block {block}",
            self.partition
        ))
    }
}

fn decompress<'a>(
    buffer: &'a mut Vec<u8>,
    stored: &[u8],
    entry: &BlockEntry,
) -> Result<&'a [u8], String> {
    // The index check rejected compressed blocks above BLOCK_BYTES, which limits the allocation.
    let raw_len = entry.raw_len as usize;
    if buffer.len() < raw_len {
        buffer.reserve_exact(raw_len - buffer.len());
        buffer.resize(raw_len, 0);
    }
    let raw = &mut buffer[..raw_len];
    let len = lz4_flex::block::decompress_into(stored, raw).map_err(|error| error.to_string())?;
    if len != raw.len() {
        return Err(format!("{len} bytes; expected {}", raw.len()));
    }
    Ok(raw)
}
