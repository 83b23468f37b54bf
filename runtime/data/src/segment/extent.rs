//! The part of a segment that belongs to one partition: where its blocks lie and what is in them.
//!
//! Owns these facts, their form as bytes for the network, and the check of what came from there: every length
//! bounded by the bytes that arrived, everything consistent, nothing believed. Does not own the blocks
//! (`assembly`) nor how the bytes travel.
//!
//! ```text
//! u16 length, header of the segment      as in the file, with its own crc32c
//! partition, first block, first ordinal  what was left out of the partition's start
//! PartitionEntry                         of the blocks from the first one on
//! BlockEntry each                        as in the file
//! crc32c                                 of all of it
//! ```

use std::ops::Range;

use super::check::check_partition;
use super::format::{
    BLOCK_ENTRY_BYTES, BlockEntry, CRC_BYTES, EXCERPT_BYTES, Excerpt, Header, PARTITION_ENTRY_BYTES,
    PartitionEntry,
};

const LENGTH_BYTES: usize = 2;

/// What one partition of a sealed segment holds, from one of its blocks on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionExtent {
    /// That of a file with these blocks alone.
    pub(super) header: Header,
    /// Of the blocks that are described; its offset is that in the file they were sealed in.
    pub(super) entry: PartitionEntry,
    index: Vec<u8>,
}

impl PartitionExtent {
    pub(super) fn new(
        header: &Header,
        excerpt: Excerpt,
        entry: PartitionEntry,
        index: Vec<u8>,
    ) -> PartitionExtent {
        let header = Header { excerpt: Some(excerpt), ..header.clone() };
        let blocks = (index.len() / BLOCK_ENTRY_BYTES) as u64;
        let entry = PartitionEntry { first_block: 0, blocks, index_crc: crc32c::crc32c(&index), ..entry };
        PartitionExtent { header, entry, index }
    }

    /// The attempt that wrote the segment.
    pub fn label(&self) -> &str {
        &self.header.label
    }

    pub fn partition(&self) -> u32 {
        self.header.partition_of(0)
    }

    /// How many partitions the segment has.
    pub fn partitions(&self) -> u32 {
        self.header.partitions
    }

    /// The first block described, counted from 0 in the partition.
    pub fn first_block(&self) -> u64 {
        self.header.first_block()
    }

    /// The block after the last one, counted in the partition.
    pub fn end_block(&self) -> u64 {
        self.first_block().saturating_add((self.index.len() / BLOCK_ENTRY_BYTES) as u64)
    }

    /// Number of records in the blocks described.
    pub fn records(&self) -> u64 {
        self.entry.records
    }

    /// Bytes of the blocks described before compression.
    pub fn raw_len(&self) -> u64 {
        self.entry.raw_len
    }

    /// Where the blocks described lie in the segment's file, one after another.
    pub fn range(&self) -> Range<u64> {
        self.entry.offset..self.entry.offset + self.entry.stored_len
    }

    /// As bytes for the network.
    pub fn encode(&self) -> Vec<u8> {
        let header = Header { excerpt: None, ..self.header.clone() }.encode();
        let mut bytes = Vec::with_capacity(header.len() + 128 + self.index.len());
        bytes.extend_from_slice(&(header.len() as u16).to_le_bytes());
        bytes.extend_from_slice(&header);
        if let Some(excerpt) = self.header.excerpt {
            excerpt.encode(&mut bytes);
        }
        self.entry.encode(self.partition(), &mut bytes);
        bytes.extend_from_slice(&self.index);
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        bytes
    }

    /// Reads what `encode` wrote, or says what does not fit.
    ///
    /// # Errors
    /// The part that is missing or contradicts another one.
    pub fn decode(bytes: &[u8]) -> Result<PartitionExtent, String> {
        let (covered, crc) = bytes.split_last_chunk::<CRC_BYTES>().ok_or("the extent is cut short")?;
        if crc32c::crc32c(covered) != u32::from_le_bytes(*crc) {
            return Err("the extent's checksum does not fit".into());
        }
        let (len, rest) = covered.split_first_chunk::<LENGTH_BYTES>().ok_or("the extent is cut short")?;
        let header_len = usize::from(u16::from_le_bytes(*len));
        let cut = || format!("an extent of {} bytes with a header of {header_len}", bytes.len());
        let (header, rest) = rest.split_at_checked(header_len).ok_or_else(cut)?;
        let (excerpt, rest) = rest.split_at_checked(EXCERPT_BYTES).ok_or_else(cut)?;
        let (entry, index) = rest.split_at_checked(PARTITION_ENTRY_BYTES).ok_or_else(cut)?;
        let (header, used) = Header::decode(header)?;
        if used != header_len || header.excerpt.is_some() || !index.len().is_multiple_of(BLOCK_ENTRY_BYTES) {
            return Err(cut());
        }
        let excerpt = Excerpt::decode(excerpt);
        let entry = PartitionEntry::decode(entry, excerpt.partition)?;
        let extent = PartitionExtent::new(&header, excerpt, entry, index.to_vec());
        extent.check()?;
        Ok(extent)
    }

    fn check(&self) -> Result<(), String> {
        let (partition, first_block) = (self.partition(), self.first_block());
        let first_ordinal = self.header.first_ordinal();
        if partition >= self.header.partitions {
            return Err(format!("partition {partition} of {}", self.header.partitions));
        }
        // A block has a record at least.
        if first_block > first_ordinal || (first_block == 0) != (first_ordinal == 0) {
            return Err(format!("block {first_block} starts with record {first_ordinal}"));
        }
        check_partition(&self.header, &self.entry, &self.index)
            .map_err(|what| format!("partition {partition}: {what}"))
    }

    /// Whether `later` describes the same partition of the same segment from a later block on, or from the
    /// same one.
    pub fn goes_on_as(&self, later: &PartitionExtent) -> bool {
        let Some(skipped) = later.first_block().checked_sub(self.first_block()) else { return false };
        let skipped = usize::try_from(skipped).ok().and_then(|blocks| blocks.checked_mul(BLOCK_ENTRY_BYTES));
        let rest = skipped.and_then(|skipped| self.index.get(skipped..));
        let end = |extent: &PartitionExtent| extent.header.first_ordinal() + extent.entry.records;
        let same_file = Header { excerpt: None, ..self.header.clone() }
            == Header { excerpt: None, ..later.header.clone() };
        same_file
            && self.partition() == later.partition()
            && end(self) == end(later)
            && self.range().end == later.range().end
            && rest == Some(later.index.as_slice())
    }

    /// The entry of a block, counted from the first one described.
    pub(super) fn block(&self, number: u64) -> Option<BlockEntry> {
        let at = usize::try_from(number).ok()?.checked_mul(BLOCK_ENTRY_BYTES)?;
        self.index.get(at..).and_then(BlockEntry::decode_first)
    }
}
