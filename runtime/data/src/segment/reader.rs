//! An open segment: a validated file, mapped as a whole or read for one partition.
//!
//! Owns the bytes and the look-ups in its footer. Does not own the walk over records, which is `Cursor`'s.
//! Opening looks at both ends of the file; an entry of the partition table and its blocks' index are checked
//! when that partition is asked for, so that a reduce does not pay for partitions of others.
//!
//! A sealed segment is immutable by contract. Should something else cut the file while it is mapped, reading
//! the lost part is a SIGBUS, which ends the task process; the retry finds the file damaged when it opens it.

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
    BLOCK_ENTRY_BYTES, BlockCompression, BlockEntry, PARTITION_ENTRY_BYTES, PartitionEntry, TRAILER_BYTES,
};
use super::index::{read_ends, read_range};
use super::mapped::Mapped;
use super::read_ahead::ReadAhead;
use crate::record::RecordEncoding;

/// A sealed segment file, validated where it was looked at.
#[derive(Debug)]
pub struct Segment {
    bytes: Bytes,
    path: PathBuf,
    ends: Ends,
}

#[derive(Debug)]
enum Bytes {
    /// All of the file.
    Mapped(Mapped),
    /// What belongs to one partition: its part of the block index, then its blocks.
    Read { partition: u32, entry: PartitionEntry, bytes: Box<[u8]> },
}

impl Segment {
    /// Maps a sealed segment and checks its header and trailer against each other and the file's length.
    /// Entries of partitions and the blocks' contents are verified later, each when it is looked at.
    ///
    /// # Errors
    /// `Open` when the file cannot be read, `Damaged` when it is not a whole segment.
    pub fn open(path: &Path) -> Result<Arc<Segment>, SegmentError> {
        let unreadable = |source| SegmentError::Open { path: path.to_owned(), source };
        Segment::map(&File::open(path).map_err(unreadable)?, path)
    }

    /// As `open` for whoever reads one partition: when that has at most `bytes_max` bytes with its index it
    /// is read into memory, and neither a descriptor nor a mapping is kept.
    ///
    /// # Errors
    /// As `open`, and as `partition`.
    pub fn open_partition(path: &Path, partition: u32, bytes_max: u64) -> Result<Arc<Segment>, SegmentError> {
        let unreadable = |source| SegmentError::Open { path: path.to_owned(), source };
        let file = File::open(path).map_err(unreadable)?;
        let ends = read_ends(&file, path)?;
        let damaged = |what| ends.damaged(path, what);
        let row = ends.row_of(path, partition)?;
        let entry =
            read_range(&file, ends.entry_at(row), PARTITION_ENTRY_BYTES as u64).map_err(unreadable)?;
        let entry = ends.entry(row, &entry).map_err(damaged)?;
        let index_len = entry.index_len() as u64;
        if entry.stored_len.saturating_add(index_len) > bytes_max {
            return Segment::map(&file, path);
        }
        let mut bytes = vec![0; (index_len + entry.stored_len) as usize].into_boxed_slice();
        let (index, blocks) = bytes.split_at_mut(index_len as usize);
        file.read_exact_at(index, ends.index_at(entry.first_block)).map_err(unreadable)?;
        ends.check_index(&entry, index).map_err(damaged)?;
        file.read_exact_at(blocks, entry.offset).map_err(unreadable)?;
        let bytes = Bytes::Read { partition, entry, bytes };
        Ok(Arc::new(Segment { bytes, path: path.to_owned(), ends }))
    }

    fn map(file: &File, path: &Path) -> Result<Arc<Segment>, SegmentError> {
        let unreadable = |source| SegmentError::Open { path: path.to_owned(), source };
        let file_len = file.metadata().map_err(unreadable)?.len();
        if usize::try_from(file_len).is_err() {
            return Err(unreadable(io::Error::from(io::ErrorKind::FileTooLarge)));
        }
        let map = Mapped::of(file).map_err(unreadable)?;
        let ends = Ends::check(&map, &map, map.len() as u64).map_err(|what| damaged(path, &map, what))?;
        Ok(Arc::new(Segment { path: path.to_owned(), ends, bytes: Bytes::Mapped(map) }))
    }

    /// One partition that was read from elsewhere: its part of the block index, then its blocks, as they are
    /// in the file.
    pub(super) fn in_memory(
        path: PathBuf,
        ends: Ends,
        (partition, entry): (u32, PartitionEntry),
        bytes: &[u8],
    ) -> Arc<Segment> {
        let bytes = Bytes::Read { partition, entry, bytes: bytes.into() };
        Arc::new(Segment { bytes, path, ends })
    }

    /// Whether all partitions of a map's output are in the file.
    pub(super) fn is_whole(&self) -> bool {
        self.ends.header.excerpt.is_none()
    }

    /// Its header and its trailer as they are in the file.
    pub(super) fn ends(&self) -> (Vec<u8>, [u8; TRAILER_BYTES]) {
        (self.ends.header.encode(), self.ends.trailer.encode())
    }

    /// All that the file has of a partition: its entry, its part of the block index and its blocks.
    pub(super) fn row(&self, partition: u32) -> Result<[&[u8]; 3], SegmentError> {
        let (entry, _) = self.blocks(partition)?;
        match &self.bytes {
            Bytes::Mapped(map) => {
                let row = self.ends.row_of(&self.path, partition)?;
                let of = |at: u64, length: usize| &map[at as usize..][..length];
                Ok([
                    of(self.ends.entry_at(row), PARTITION_ENTRY_BYTES),
                    of(self.ends.index_at(entry.first_block), entry.index_len()),
                    of(entry.offset, entry.stored_len as usize),
                ])
            }
            Bytes::Read { .. } => Err(self.damaged("only one partition of it was read".to_owned())),
        }
    }

    /// Bytes of its own memory that it holds.
    pub(crate) fn heap_bytes(&self) -> usize {
        match &self.bytes {
            Bytes::Mapped(_) => 0,
            Bytes::Read { bytes, .. } => bytes.len(),
        }
    }

    /// Whether it is a mapping, of which a process may have so many only.
    pub(crate) fn is_mapped(&self) -> bool {
        matches!(self.bytes, Bytes::Mapped(_))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The attempt that wrote it.
    pub fn label(&self) -> &str {
        &self.ends.header.label
    }

    /// The layout of its records.
    pub fn encoding(&self) -> RecordEncoding {
        self.ends.header.encoding
    }

    /// Whether its blocks may be compressed.
    pub fn compression(&self) -> BlockCompression {
        self.ends.header.compression
    }

    pub fn partitions(&self) -> u32 {
        self.ends.header.partitions
    }

    /// Number of records in all partitions.
    pub fn records(&self) -> u64 {
        self.ends.trailer.records
    }

    /// Bytes of all records as encoded, before compression.
    pub fn raw_len(&self) -> u64 {
        self.ends.trailer.raw_len
    }

    /// The checksum of the trailer, which covers the footer's, which covers that of each block.
    pub(crate) fn crc(&self) -> u32 {
        self.ends.trailer.crc()
    }

    /// Length of the file in bytes.
    pub fn file_len(&self) -> u64 {
        self.ends.file_len
    }

    /// Place and size of one partition.
    ///
    /// # Errors
    /// `NoPartition` when there are fewer, `OtherPartition` when another one only is here, `Damaged` when the
    /// entry is.
    pub fn partition(&self, partition: u32) -> Result<PartitionEntry, SegmentError> {
        let row = self.ends.row_of(&self.path, partition)?;
        match &self.bytes {
            Bytes::Mapped(map) => {
                let entry = self.ends.entry(row, &map[self.ends.entry_at(row) as usize..]);
                entry.map_err(|what| self.damaged(what))
            }
            Bytes::Read { partition: held, entry, .. } if *held == partition => Ok(*entry),
            Bytes::Read { partition: held, .. } => {
                Err(SegmentError::OtherPartition { path: self.path.clone(), partition, held: *held })
            }
        }
    }

    /// A cursor before the first record of a partition.
    ///
    /// # Errors
    /// As `partition`.
    pub fn cursor(self: &Arc<Self>, partition: u32) -> Result<Cursor, SegmentError> {
        Cursor::new(self.clone(), partition)
    }

    /// A cursor before record `ordinal` (from 0) of a partition; the partition's number of records stands for
    /// its end. A binary search and at most one block decoded, whatever the size of the partition.
    ///
    /// # Errors
    /// As `partition`, `NoRecord`, or `Damaged` when the block that holds the record is.
    pub fn cursor_at(self: &Arc<Self>, partition: u32, ordinal: u64) -> Result<Cursor, SegmentError> {
        let mut cursor = Cursor::new(self.clone(), partition)?;
        cursor.seek(ordinal)?;
        Ok(cursor)
    }

    /// Where a record of a partition lies, without a look at its block; none when it is not here.
    pub(crate) fn find(&self, partition: u32, ordinal: u64) -> Result<Option<SegmentPosition>, SegmentError> {
        let (entry, blocks) = self.blocks(partition)?;
        let first = self.first_ordinal();
        if !(first..first.saturating_add(entry.records)).contains(&ordinal) {
            return Ok(None);
        }
        let block = self.block_of(&blocks, ordinal)?;
        Ok(Some(SegmentPosition { block: block - blocks.start + self.first_block(), ordinal }))
    }

    /// The last of some blocks of a partition whose first record is not beyond one of theirs, by binary
    /// search.
    pub(super) fn block_of(&self, blocks: &Range<u64>, ordinal: u64) -> Result<u64, SegmentError> {
        let (mut low, mut high) = (blocks.start, blocks.end);
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

    /// Number in its partition of the first block that a partition starts with here.
    pub(super) fn first_block(&self) -> u64 {
        self.ends.header.first_block()
    }

    /// Ordinal of the first record that a partition starts with here; not 0 when the file holds the end of
    /// one only.
    pub(crate) fn first_ordinal(&self) -> u64 {
        self.ends.header.first_ordinal()
    }

    /// The partition's blocks as a range of the block index, which is checked.
    pub(super) fn blocks(&self, partition: u32) -> Result<(PartitionEntry, Range<u64>), SegmentError> {
        let entry = self.partition(partition)?;
        if let Bytes::Mapped(map) = &self.bytes {
            let index = &map[self.ends.index_at(entry.first_block) as usize..][..entry.index_len()];
            self.ends.check_index(&entry, index).map_err(|what| self.damaged(what))?;
        }
        Ok((entry, entry.first_block..entry.first_block + entry.blocks))
    }

    /// One entry of the block index.
    pub(super) fn block(&self, block: u64) -> Result<BlockEntry, SegmentError> {
        let entry = match &self.bytes {
            Bytes::Mapped(map) => &map[self.ends.index_at(block) as usize..],
            Bytes::Read { entry, bytes, .. } => {
                &bytes[(block - entry.first_block) as usize * BLOCK_ENTRY_BYTES..]
            }
        };
        BlockEntry::decode(entry).ok_or_else(|| self.damaged(format!("block {block}: unknown codec")))
    }

    /// The stored bytes of one block, checked against its checksum.
    pub(super) fn stored(&self, index: u64, block: &BlockEntry) -> Result<&[u8], SegmentError> {
        let len = block.stored_len as usize;
        let stored = match &self.bytes {
            Bytes::Mapped(map) => &map[block.offset as usize..][..len],
            Bytes::Read { entry, bytes, .. } => {
                &bytes[entry.index_len() + (block.offset - entry.offset) as usize..][..len]
            }
        };
        if crc32c::crc32c(stored) != block.crc {
            return Err(
                self.damaged(format!("the checksum of block {index} at byte {} does not fit", block.offset))
            );
        }
        Ok(stored)
    }

    /// A cursor comes to the block at this offset.
    pub(super) fn read_ahead(&self, read_ahead: &mut ReadAhead, offset: u64) {
        if let Bytes::Mapped(map) = &self.bytes {
            read_ahead.moved(map, offset);
        }
    }

    pub(super) fn damaged(&self, what: String) -> SegmentError {
        self.ends.damaged(&self.path, what)
    }
}
