//! An open segment: a validated, mapped file.
//!
//! Owns the mapping and the look-ups in its footer. Does not own the walk over records, which is `Cursor`'s.
//! Holds no heap memory that grows with the file: the footer is read where it is mapped.
//!
//! A sealed segment is immutable by contract. Should something else cut the file while it is mapped, reading
//! the lost part is a SIGBUS, which ends the task process; the retry finds the file damaged when it opens it.
#![allow(unsafe_code)] // maps files

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memmap2::Mmap;

use super::check::check;
use super::cursor::{Cursor, SegmentPosition};
use super::error::SegmentError;
use super::format::{
    BLOCK_ENTRY_BYTES, BlockCompression, BlockEntry, Excerpt, Header, PARTITION_ENTRY_BYTES, PartitionEntry,
    Trailer,
};
use crate::record::RecordEncoding;

/// A sealed segment file, mapped and validated.
#[derive(Debug)]
pub struct Segment {
    map: Mmap,
    path: PathBuf,
    header: Header,
    trailer: Trailer,
}

impl Segment {
    /// Maps a sealed segment and validates its header, footer and trailer against each other and the file's
    /// length. The blocks' contents are verified later, each when a cursor enters it.
    ///
    /// # Errors
    /// `Open` when the file cannot be read, `Damaged` when it is not a whole segment.
    pub fn open(path: &Path) -> Result<Arc<Segment>, SegmentError> {
        let unreadable = |source| SegmentError::Open { path: path.to_owned(), source };
        let file = File::open(path).map_err(unreadable)?;
        let len = file.metadata().map_err(unreadable)?.len();
        if usize::try_from(len).is_err() {
            return Err(unreadable(io::Error::from(io::ErrorKind::FileTooLarge)));
        }
        // SAFETY: the mapping is private to reading. Segments are immutable once sealed (see the module's
        // header for what a violation does), so the bytes behind the shared slice do not change while it
        // lives.
        let map = unsafe { Mmap::map(&file) }.map_err(unreadable)?;
        let parts = check(&map).map_err(|what| SegmentError::Damaged {
            path: path.to_owned(),
            label: Header::decode(&map)
                .map_or_else(|_| "an unknown attempt".to_owned(), |(header, _)| header.label),
            what,
        })?;
        Ok(Arc::new(Segment { map, path: path.to_owned(), header: parts.header, trailer: parts.trailer }))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The attempt that wrote it.
    pub fn label(&self) -> &str {
        &self.header.label
    }

    /// The layout of its records.
    pub fn encoding(&self) -> RecordEncoding {
        self.header.encoding
    }

    /// Whether its blocks may be compressed.
    pub fn compression(&self) -> BlockCompression {
        self.header.compression
    }

    pub fn partitions(&self) -> u32 {
        self.header.partitions
    }

    /// Number of records in all partitions.
    pub fn records(&self) -> u64 {
        self.trailer.records
    }

    /// Bytes of all records as encoded, before compression.
    pub fn raw_len(&self) -> u64 {
        let row = |row: usize| self.trailer.footer_offset as usize + row * PARTITION_ENTRY_BYTES;
        (0..self.header.table_len() as usize)
            .map(|number| PartitionEntry::decode(&self.map[row(number)..]).raw_len)
            .sum()
    }

    /// The checksum of the trailer, which covers the footer's, which covers that of each block.
    pub(crate) fn crc(&self) -> u32 {
        self.trailer.crc()
    }

    /// Length of the file in bytes.
    pub fn file_len(&self) -> u64 {
        self.map.len() as u64
    }

    /// Place and size of one partition.
    ///
    /// # Errors
    /// `NoPartition` when there are fewer, `OtherPartition` when this file holds another one only.
    pub fn partition(&self, partition: u32) -> Result<PartitionEntry, SegmentError> {
        let partitions = self.partitions();
        if partition >= partitions {
            return Err(SegmentError::NoPartition { path: self.path.clone(), partition, partitions });
        }
        let row = match self.header.excerpt {
            None => partition,
            Some(excerpt) if excerpt.partition == partition => 0,
            Some(Excerpt { partition: held, .. }) => {
                return Err(SegmentError::OtherPartition { path: self.path.clone(), partition, held });
            }
        };
        let at = self.trailer.footer_offset as usize + row as usize * PARTITION_ENTRY_BYTES;
        Ok(PartitionEntry::decode(&self.map[at..]))
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
        self.header.first_block()
    }

    /// Ordinal of the first record that a partition starts with here; not 0 when the file holds the end of
    /// one only.
    pub(crate) fn first_ordinal(&self) -> u64 {
        self.header.first_ordinal()
    }

    /// The partition's blocks as a range of the block index.
    pub(super) fn blocks(&self, partition: u32) -> Result<(PartitionEntry, Range<u64>), SegmentError> {
        let entry = self.partition(partition)?;
        let end = match self.partition(partition + 1) {
            Ok(next) => next.first_block,
            // The last one, or the only one here.
            Err(_) => self.trailer.blocks,
        };
        Ok((entry, entry.first_block..end))
    }

    /// One entry of the block index.
    pub(super) fn block(&self, block: u64) -> Result<BlockEntry, SegmentError> {
        let table = self.header.table_len() as usize * PARTITION_ENTRY_BYTES;
        let at = self.trailer.footer_offset as usize + table + block as usize * BLOCK_ENTRY_BYTES;
        BlockEntry::decode(&self.map[at..])
            .ok_or_else(|| self.damaged(format!("block {block}: unknown codec")))
    }

    /// The stored bytes of one block, checked against its checksum.
    pub(super) fn stored(&self, index: u64, block: &BlockEntry) -> Result<&[u8], SegmentError> {
        let start = block.offset as usize;
        let stored = &self.map[start..start + block.stored_len as usize];
        if crc32c::crc32c(stored) != block.crc {
            return Err(self.damaged(format!("the checksum of block {index} at byte {start} does not fit")));
        }
        Ok(stored)
    }

    pub(super) fn damaged(&self, what: String) -> SegmentError {
        SegmentError::Damaged { path: self.path.clone(), label: self.label().to_owned(), what }
    }
}
