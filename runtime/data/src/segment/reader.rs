//! An open segment: a validated file, mapped as a whole or read for one partition. Opening checks both ends of
//! the file; a partition's entry and index are checked on access, so that a reduce does not pay for other
//! partitions.
//!
//! A sealed segment is immutable by contract. If another program truncates a mapped file, reading the lost part
//! raises SIGBUS, which ends the task process; the retry finds the file damaged when it opens it.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::check::Ends;
use super::cursor::{Cursor, SegmentPosition};
use super::error::{SegmentError, damaged};
use super::format::{
    BLOCK_ENTRY_BYTES, BlockCompression, BlockEntry, PARTITION_ENTRY_BYTES, PartitionEntry,
    TRAILER_BYTES,
};
use super::index::{read_ends, read_range};
use super::mapped::Mapped;
use super::read_ahead::ReadAhead;
use crate::record::RecordEncoding;

/// A sealed segment file.
#[derive(Debug)]
pub struct Segment {
    bytes: Bytes,
    path: PathBuf,
    ends: Ends,
}

#[derive(Debug)]
enum Bytes {
    /// The whole file.
    Mapped(Mapped),
    /// One partition: its part of the block index, then its blocks.
    Read {
        partition: u32,
        entry: PartitionEntry,
        bytes: Box<[u8]>,
    },
}

impl Segment {
    /// Maps a sealed segment and checks header and trailer against each other and the file's length. Partition
    /// entries and blocks are verified on access.
    ///
    /// # Errors
    /// `Open` if the file cannot be read, `Damaged` if it is not a complete segment.
    pub fn open(path: &Path) -> Result<Arc<Segment>, SegmentError> {
        let unreadable = |source| SegmentError::Open {
            path: path.to_owned(),
            source,
        };
        Segment::map(&File::open(path).map_err(unreadable)?, path)
    }

    /// Like `open`, for a reader of one partition: if that has at most `bytes_max` bytes with its index, it is
    /// read into memory, and neither a descriptor nor a mapping stays open.
    ///
    /// # Errors
    /// As `open`, and as `partition`.
    pub fn open_partition(
        path: &Path,
        partition: u32,
        bytes_max: u64,
    ) -> Result<Arc<Segment>, SegmentError> {
        let unreadable = |source| SegmentError::Open {
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(unreadable)?;
        let ends = read_ends(&file, path)?;
        let damaged = |what| ends.damaged(path, what);
        let row = ends.row_of(path, partition)?;
        let entry = read_range(&file, ends.entry_at(row), PARTITION_ENTRY_BYTES as u64)
            .map_err(unreadable)?;
        let entry = ends.entry(row, &entry).map_err(damaged)?;
        let index_len = entry.index_len() as u64;
        if entry.stored_len.saturating_add(index_len) > bytes_max {
            return Segment::map(&file, path);
        }
        let mut bytes = vec![0; (index_len + entry.stored_len) as usize].into_boxed_slice();
        let (index, blocks) = bytes.split_at_mut(index_len as usize);
        file.read_exact_at(index, ends.index_at(entry.first_block))
            .map_err(unreadable)?;
        ends.check_index(&entry, index).map_err(damaged)?;
        file.read_exact_at(blocks, entry.offset)
            .map_err(unreadable)?;
        let bytes = Bytes::Read {
            partition,
            entry,
            bytes,
        };
        Ok(Arc::new(Segment {
            bytes,
            path: path.to_owned(),
            ends,
        }))
    }

    fn map(file: &File, path: &Path) -> Result<Arc<Segment>, SegmentError> {
        let unreadable = |source| SegmentError::Open {
            path: path.to_owned(),
            source,
        };
        let file_len = file.metadata().map_err(unreadable)?.len();
        if usize::try_from(file_len).is_err() {
            return Err(unreadable(io::Error::from(io::ErrorKind::FileTooLarge)));
        }
        let map = Mapped::new(file).map_err(unreadable)?;
        let ends =
            Ends::check(&map, &map, map.len() as u64).map_err(|what| damaged(path, &map, what))?;
        Ok(Arc::new(Segment {
            path: path.to_owned(),
            ends,
            bytes: Bytes::Mapped(map),
        }))
    }

    /// Builds the segment of one partition from its part of the block index followed by its blocks.
    pub(super) fn in_memory(
        path: PathBuf,
        ends: Ends,
        partition: u32,
        entry: PartitionEntry,
        bytes: &[u8],
    ) -> Arc<Segment> {
        let bytes = Bytes::Read {
            partition,
            entry,
            bytes: bytes.into(),
        };
        Arc::new(Segment { bytes, path, ends })
    }

    /// Whether the file has all partitions of a map's output.
    pub(super) fn is_whole(&self) -> bool {
        self.ends.header.excerpt.is_none()
    }

    /// Returns the encoded header and trailer.
    pub(super) fn ends(&self) -> (Vec<u8>, [u8; TRAILER_BYTES]) {
        (self.ends.header.encode(), self.ends.trailer.encode())
    }

    /// Returns a partition's entry, its part of the block index and its blocks, encoded.
    pub(super) fn row(&self, partition: u32) -> Result<[&[u8]; 3], SegmentError> {
        let (entry, _) = self.blocks(partition)?;
        match &self.bytes {
            Bytes::Mapped(map) => {
                let row = self.ends.row_of(&self.path, partition)?;
                let slice = |at: u64, length: usize| &map[at as usize..][..length];
                Ok([
                    slice(self.ends.entry_at(row), PARTITION_ENTRY_BYTES),
                    slice(self.ends.index_at(entry.first_block), entry.index_len()),
                    slice(entry.offset, entry.stored_len as usize),
                ])
            }
            Bytes::Read { .. } => Err(self.damaged("only one partition was read".to_owned())),
        }
    }

    /// Returns the heap memory in use.
    pub(crate) fn heap_bytes(&self) -> usize {
        match &self.bytes {
            Bytes::Mapped(_) => 0,
            Bytes::Read { bytes, .. } => bytes.len(),
        }
    }

    /// Whether the segment is mapped; the number of mappings of a process is limited.
    pub(crate) fn is_mapped(&self) -> bool {
        matches!(self.bytes, Bytes::Mapped(_))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the attempt that wrote the segment.
    pub fn label(&self) -> &str {
        &self.ends.header.label
    }

    pub fn encoding(&self) -> RecordEncoding {
        self.ends.header.encoding
    }

    /// Whether blocks may be compressed.
    pub fn compression(&self) -> BlockCompression {
        self.ends.header.compression
    }

    pub fn partitions(&self) -> u32 {
        self.ends.header.partitions
    }

    /// Returns the number of records in all partitions.
    pub fn records(&self) -> u64 {
        self.ends.trailer.records
    }

    /// Returns the encoded bytes of all records, before compression.
    pub fn raw_len(&self) -> u64 {
        self.ends.trailer.raw_len
    }

    /// Returns the trailer's checksum, which covers the whole file.
    pub(crate) fn crc(&self) -> u32 {
        self.ends.trailer.crc()
    }

    /// Returns the length of the file in bytes.
    pub fn file_len(&self) -> u64 {
        self.ends.file_len
    }

    /// Returns the entry of one partition.
    ///
    /// # Errors
    /// `NoPartition` if it does not exist, `OtherPartition` if the file holds only another one, `Damaged` if
    /// the entry is.
    pub fn partition(&self, partition: u32) -> Result<PartitionEntry, SegmentError> {
        let row = self.ends.row_of(&self.path, partition)?;
        match &self.bytes {
            Bytes::Mapped(map) => {
                let entry = self
                    .ends
                    .entry(row, &map[self.ends.entry_at(row) as usize..]);
                entry.map_err(|what| self.damaged(what))
            }
            Bytes::Read {
                partition: held,
                entry,
                ..
            } if *held == partition => Ok(*entry),
            Bytes::Read {
                partition: held, ..
            } => Err(SegmentError::OtherPartition {
                path: self.path.clone(),
                partition,
                held: *held,
            }),
        }
    }

    /// Returns a cursor before the first record of a partition.
    ///
    /// # Errors
    /// As `partition`.
    pub fn cursor(self: &Arc<Self>, partition: u32) -> Result<Cursor, SegmentError> {
        Cursor::new(self.clone(), partition)
    }

    /// Returns a cursor before record `ordinal` (from 0) of a partition; the number of records stands for its
    /// end. Takes a binary search and at most one decoded block.
    ///
    /// # Errors
    /// As `partition`, `NoRecord`, or `Damaged` if the record's block is.
    pub fn cursor_at(
        self: &Arc<Self>,
        partition: u32,
        ordinal: u64,
    ) -> Result<Cursor, SegmentError> {
        let mut cursor = Cursor::new(self.clone(), partition)?;
        cursor.seek(ordinal)?;
        Ok(cursor)
    }

    /// Returns the position of a record from the index alone; `None` if the file does not have it.
    pub(crate) fn find(
        &self,
        partition: u32,
        ordinal: u64,
    ) -> Result<Option<SegmentPosition>, SegmentError> {
        let (entry, blocks) = self.blocks(partition)?;
        let first = self.first_ordinal();
        if !(first..first.saturating_add(entry.records)).contains(&ordinal) {
            return Ok(None);
        }
        let block = self.block_of(&blocks, ordinal)?;
        Ok(Some(SegmentPosition {
            block: block - blocks.start + self.first_block(),
            ordinal,
        }))
    }

    /// Finds the block that contains a record, by binary search over the given blocks.
    pub(super) fn block_of(&self, blocks: &Range<u64>, ordinal: u64) -> Result<u64, SegmentError> {
        let mut low = blocks.start;
        let mut high = blocks.end;
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.block(middle)?.first_ordinal <= ordinal {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Returns the number of the partition's first block in this file.
    pub(super) fn first_block(&self) -> u64 {
        self.ends.header.first_block()
    }

    /// Returns the number of the partition's first record in this file: 0 unless the file is an excerpt.
    pub(crate) fn first_ordinal(&self) -> u64 {
        self.ends.header.first_ordinal()
    }

    /// Returns a partition's entry and its range of the block index, after checking the index.
    pub(super) fn blocks(
        &self,
        partition: u32,
    ) -> Result<(PartitionEntry, Range<u64>), SegmentError> {
        let entry = self.partition(partition)?;
        if let Bytes::Mapped(map) = &self.bytes {
            let index = &map[self.ends.index_at(entry.first_block) as usize..][..entry.index_len()];
            self.ends
                .check_index(&entry, index)
                .map_err(|what| self.damaged(what))?;
        }
        Ok((entry, entry.first_block..entry.first_block + entry.blocks))
    }

    /// Returns one entry of the block index.
    pub(super) fn block(&self, block: u64) -> Result<BlockEntry, SegmentError> {
        let entry = match &self.bytes {
            Bytes::Mapped(map) => &map[self.ends.index_at(block) as usize..],
            Bytes::Read { entry, bytes, .. } => {
                &bytes[(block - entry.first_block) as usize * BLOCK_ENTRY_BYTES..]
            }
        };
        BlockEntry::decode(entry)
            .ok_or_else(|| self.damaged(format!("block {block}: unknown codec")))
    }

    /// Returns the stored bytes of a block after verifying its checksum.
    pub(super) fn stored(&self, index: u64, block: &BlockEntry) -> Result<&[u8], SegmentError> {
        let len = block.stored_len as usize;
        let stored = match &self.bytes {
            Bytes::Mapped(map) => &map[block.offset as usize..][..len],
            Bytes::Read { entry, bytes, .. } => {
                &bytes[entry.index_len() + (block.offset - entry.offset) as usize..][..len]
            }
        };
        if crc32c::crc32c(stored) != block.crc {
            return Err(self.damaged(format!(
                "checksum mismatch in block {index} at byte {}",
                block.offset
            )));
        }
        Ok(stored)
    }

    /// Advises the kernel that a cursor enters the block at `offset`.
    pub(super) fn read_ahead(&self, read_ahead: &mut ReadAhead, offset: u64) {
        if let Bytes::Mapped(map) = &self.bytes {
            read_ahead.advance(map, offset);
        }
    }

    pub(super) fn damaged(&self, what: String) -> SegmentError {
        self.ends.damaged(&self.path, what)
    }
}
