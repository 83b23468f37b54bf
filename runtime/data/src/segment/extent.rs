//! The index of one partition's blocks and its network encoding. Decoding validates everything: lengths are
//! bounded by the received bytes, and all parts must be consistent.
//!
//! ```text
//! u16 length, header of the segment      as in the file, with its own crc32c
//! partition, first block, first ordinal  what precedes the first block
//! PartitionEntry                         of the blocks from the first one on
//! BlockEntry each                        as in the file
//! crc32c                                 of everything before
//! ```

use std::ops::Range;

use super::check::check_partition;
use super::format::{
    BLOCK_ENTRY_BYTES, BlockEntry, CRC_BYTES, EXCERPT_BYTES, Excerpt, Header,
    PARTITION_ENTRY_BYTES, PartitionEntry,
};

const LENGTH_BYTES: usize = 2;

/// The blocks of one partition of a sealed segment, from one block on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionExtent {
    /// The header of a file with only these blocks.
    pub(super) header: Header,
    /// The entry of these blocks; its offset is that in the original file.
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
        let header = Header {
            excerpt: Some(excerpt),
            ..header.clone()
        };
        let blocks = (index.len() / BLOCK_ENTRY_BYTES) as u64;
        let entry = PartitionEntry {
            first_block: 0,
            blocks,
            index_crc: crc32c::crc32c(&index),
            ..entry
        };
        PartitionExtent {
            header,
            entry,
            index,
        }
    }

    /// Returns the attempt that wrote the segment.
    pub fn label(&self) -> &str {
        &self.header.label
    }

    pub fn partition(&self) -> u32 {
        self.header.partition_of(0)
    }

    /// Returns the number of partitions of the segment.
    pub fn partitions(&self) -> u32 {
        self.header.partitions
    }

    /// Returns the first block, counted in the partition.
    pub fn first_block(&self) -> u64 {
        self.header.first_block()
    }

    /// Returns the block after the last one, counted in the partition.
    pub fn end_block(&self) -> u64 {
        self.first_block()
            .saturating_add((self.index.len() / BLOCK_ENTRY_BYTES) as u64)
    }

    pub fn records(&self) -> u64 {
        self.entry.records
    }

    /// Returns the raw length of the blocks, before compression.
    pub fn raw_len(&self) -> u64 {
        self.entry.raw_len
    }

    /// Returns the range of the blocks in the segment's file.
    pub fn range(&self) -> Range<u64> {
        self.entry.offset..self.entry.offset + self.entry.stored_len
    }

    /// Encodes the extent for the network.
    pub fn encode(&self) -> Vec<u8> {
        let header = Header {
            excerpt: None,
            ..self.header.clone()
        }
        .encode();
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

    /// Decodes an extent; the error describes the mismatch.
    ///
    /// # Errors
    /// Fails if a part is missing or inconsistent.
    pub fn decode(bytes: &[u8]) -> Result<PartitionExtent, String> {
        let (covered, crc) = bytes
            .split_last_chunk::<CRC_BYTES>()
            .ok_or("the extent is truncated")?;
        if crc32c::crc32c(covered) != u32::from_le_bytes(*crc) {
            return Err("checksum mismatch in the extent".into());
        }
        let (len, rest) = covered
            .split_first_chunk::<LENGTH_BYTES>()
            .ok_or("the extent is truncated")?;
        let header_len = usize::from(u16::from_le_bytes(*len));
        let cut = || {
            format!(
                "invalid extent of {} bytes with a header of {header_len}",
                bytes.len()
            )
        };
        let (header, rest) = rest.split_at_checked(header_len).ok_or_else(cut)?;
        let (excerpt, rest) = rest.split_at_checked(EXCERPT_BYTES).ok_or_else(cut)?;
        let (entry, index) = rest
            .split_at_checked(PARTITION_ENTRY_BYTES)
            .ok_or_else(cut)?;
        let (header, used) = Header::decode(header)?;
        if used != header_len
            || header.excerpt.is_some()
            || !index.len().is_multiple_of(BLOCK_ENTRY_BYTES)
        {
            return Err(cut());
        }
        let excerpt = Excerpt::decode(excerpt);
        let entry = PartitionEntry::decode(entry, excerpt.partition)?;
        let extent = PartitionExtent::new(&header, excerpt, entry, index.to_vec());
        extent.check()?;
        Ok(extent)
    }

    fn check(&self) -> Result<(), String> {
        let partition = self.partition();
        let first_block = self.first_block();
        let first_ordinal = self.header.first_ordinal();
        if partition >= self.header.partitions {
            return Err(format!(
                "partition {partition}; the segment has {}",
                self.header.partitions
            ));
        }
        // Each block has at least one record.
        if first_block > first_ordinal || (first_block == 0) != (first_ordinal == 0) {
            return Err(format!(
                "block {first_block} cannot start with record {first_ordinal}"
            ));
        }
        check_partition(&self.header, &self.entry, &self.index)
            .map_err(|what| format!("partition {partition}: {what}"))
    }

    /// Whether `later` describes the same partition of the same segment from the same or a later block on.
    pub fn continues_as(&self, later: &PartitionExtent) -> bool {
        let Some(skipped) = later.first_block().checked_sub(self.first_block()) else {
            return false;
        };
        let skipped = usize::try_from(skipped)
            .ok()
            .and_then(|blocks| blocks.checked_mul(BLOCK_ENTRY_BYTES));
        let rest = skipped.and_then(|skipped| self.index.get(skipped..));
        let end = |extent: &PartitionExtent| extent.header.first_ordinal() + extent.entry.records;
        let same_file = Header {
            excerpt: None,
            ..self.header.clone()
        } == Header {
            excerpt: None,
            ..later.header.clone()
        };
        same_file
            && self.partition() == later.partition()
            && end(self) == end(later)
            && self.range().end == later.range().end
            && rest == Some(later.index.as_slice())
    }

    /// Returns the entry of a block, counted from the extent's first block.
    pub(super) fn block(&self, number: u64) -> Option<BlockEntry> {
        let at = usize::try_from(number)
            .ok()?
            .checked_mul(BLOCK_ENTRY_BYTES)?;
        self.index.get(at..).and_then(BlockEntry::decode_first)
    }
}
