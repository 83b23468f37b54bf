//! Consistency checks of a segment file, before any offset or length in it is used: both ends on open, a
//! partition's entry and index on access, the whole footer for a server. Block checksums are verified when a
//! cursor enters the block.

use std::ops::Range;
use std::path::Path;

use super::error::SegmentError;
use super::format::{
    BLOCK_BYTES, BLOCK_ENTRY_BYTES, BlockEntry, Codec, Excerpt, Header, PARTITION_ENTRY_BYTES,
    PartitionEntry, TRAILER_BYTES, Trailer, table_crc,
};

/// Header and trailer, which match each other and the file's length.
#[derive(Debug)]
pub(super) struct Ends {
    pub file_len: u64,
    pub header: Header,
    pub header_len: usize,
    pub trailer: Trailer,
}

impl Ends {
    /// Decodes the header at the start of `start` and the trailer at the end of `end`; the error describes the
    /// mismatch.
    pub(super) fn check(start: &[u8], end: &[u8], file_len: u64) -> Result<Ends, String> {
        let trailer = Trailer::decode(end)?;
        let (header, header_len) = Header::decode(start)?;
        footer_range(&header, &trailer, file_len)?;
        Ok(Ends {
            file_len,
            header,
            header_len,
            trailer,
        })
    }

    /// Returns the error for damage elsewhere in the file at this path.
    #[cold]
    pub(super) fn damaged(&self, path: &Path, what: String) -> SegmentError {
        SegmentError::Damaged {
            path: path.to_owned(),
            label: self.header.label.clone(),
            what,
        }
    }

    /// Returns the partition's row in the partition table.
    pub(super) fn row_of(&self, path: &Path, partition: u32) -> Result<u32, SegmentError> {
        let partitions = self.header.partitions;
        if partition >= partitions {
            return Err(SegmentError::NoPartition {
                path: path.to_owned(),
                partition,
                partitions,
            });
        }
        match self.header.excerpt {
            None => Ok(partition),
            Some(excerpt) if excerpt.partition == partition => Ok(0),
            Some(Excerpt {
                partition: held, ..
            }) => Err(SegmentError::OtherPartition {
                path: path.to_owned(),
                partition,
                held,
            }),
        }
    }

    /// Returns the offset of a row of the partition table.
    pub(super) fn entry_at(&self, row: u32) -> u64 {
        self.trailer.footer_offset + u64::from(row) * PARTITION_ENTRY_BYTES as u64
    }

    /// Returns the offset of a partition's block index.
    pub(super) fn index_at(&self, first_block: u64) -> u64 {
        self.entry_at(self.header.table_len()) + first_block * BLOCK_ENTRY_BYTES as u64
    }

    /// Decodes a row of the partition table and checks that it points inside the file.
    pub(super) fn entry(&self, row: u32, bytes: &[u8]) -> Result<PartitionEntry, String> {
        let partition = self.header.partition_of(row);
        let entry = PartitionEntry::decode(bytes, partition)?;
        let bytes_end = entry.offset.checked_add(entry.stored_len);
        let blocks_end = entry.first_block.checked_add(entry.blocks);
        let inside = entry.offset >= self.header_len as u64
            && bytes_end.is_some_and(|end| end <= self.trailer.footer_offset)
            && blocks_end.is_some_and(|end| end <= self.trailer.blocks);
        if !inside {
            return Err(format!(
                "partition {partition}: {} bytes at byte {} in {} blocks from block {} on exceed the file",
                entry.stored_len, entry.offset, entry.blocks, entry.first_block
            ));
        }
        Ok(entry)
    }

    /// Checks a partition's block index against its entry.
    pub(super) fn check_index(&self, entry: &PartitionEntry, index: &[u8]) -> Result<(), String> {
        if crc32c::crc32c(index) != entry.index_crc {
            return Err("checksum mismatch in the block index".into());
        }
        check_partition(&self.header, entry, index)
    }
}

/// Checks the whole footer, whose length matches the trailer: each byte between header and footer must belong
/// to exactly one block.
pub(super) fn check_footer(ends: &Ends, footer: &[u8]) -> Result<(), String> {
    let Ends {
        header,
        header_len,
        trailer,
        ..
    } = ends;
    let (table, index) = footer.split_at(header.table_len() as usize * PARTITION_ENTRY_BYTES);
    if table_crc(table) != trailer.table_crc {
        return Err("checksum mismatch in the partition table".into());
    }
    let mut offset = *header_len as u64;
    let mut block = 0u64;
    let mut records = 0u64;
    let mut raw_len = 0u64;
    for (row, bytes) in (0..).zip(table.chunks_exact(PARTITION_ENTRY_BYTES)) {
        let entry = ends.entry(row, bytes)?;
        if (entry.offset, entry.first_block) != (offset, block) {
            return Err(format!(
                "partition {row} starts at block {}, byte {}",
                entry.first_block, entry.offset
            ));
        }
        let own = &index[block as usize * BLOCK_ENTRY_BYTES..][..entry.index_len()];
        ends.check_index(&entry, own)
            .map_err(|what| format!("partition {row}: {what}"))?;
        offset += entry.stored_len;
        block += entry.blocks;
        records = records
            .checked_add(entry.records)
            .ok_or("the record counts overflow")?;
        raw_len = raw_len
            .checked_add(entry.raw_len)
            .ok_or("the raw lengths overflow")?;
    }
    let found = (block, offset, records, raw_len);
    let expected = (
        trailer.blocks,
        trailer.footer_offset,
        trailer.records,
        trailer.raw_len,
    );
    if found != expected {
        return Err(format!(
            "the partitions have {} blocks, ending at byte {}, and {} records of {} raw bytes; the trailer has {}, {}, {} \
                         and {}",
            found.0, found.1, found.2, found.3, expected.0, expected.1, expected.2, expected.3
        ));
    }
    Ok(())
}

/// Checks the block index of one partition: its blocks are contiguous from `entry.offset` on.
pub(super) fn check_partition(
    header: &Header,
    entry: &PartitionEntry,
    index: &[u8],
) -> Result<(), String> {
    let end = (index.len() / BLOCK_ENTRY_BYTES) as u64;
    if entry.blocks != end || (end == 0) != (entry.records == 0) {
        return Err(format!(
            "{} records in {} blocks, but {end} index entries",
            entry.records, entry.blocks
        ));
    }
    let block_at = |at: u64| {
        BlockEntry::decode(&index[at as usize * BLOCK_ENTRY_BYTES..])
            .ok_or_else(|| format!("block {at}: unknown codec"))
    };
    let first = header.first_ordinal();
    let end_ordinal = first
        .checked_add(entry.records)
        .ok_or("the record counts overflow")?;
    let mut offset = entry.offset;
    let mut raw_len = 0u64;
    for at in 0..end {
        let block = block_at(at)?;
        let next = if at + 1 < end {
            block_at(at + 1)?.first_ordinal
        } else {
            end_ordinal
        };
        if raw_len == 0 && block.first_ordinal != first {
            return Err(format!(
                "it starts with record {}; expected {first}",
                block.first_ordinal
            ));
        }
        offset = check_block(header, &block, offset, next)
            .map_err(|what| format!("block {at}: {what}"))?;
        raw_len = raw_len
            .checked_add(block.raw_len)
            .ok_or("the raw lengths overflow")?;
    }
    if entry.stored_len != offset - entry.offset || entry.raw_len != raw_len {
        return Err(format!(
            "its blocks do not add up to {} bytes",
            entry.stored_len
        ));
    }
    Ok(())
}

/// Returns the footer's range in a file of `file_len` bytes if header, trailer and length match.
pub(super) fn footer_range(
    header: &Header,
    trailer: &Trailer,
    file_len: u64,
) -> Result<Range<u64>, String> {
    let end = file_len - TRAILER_BYTES as u64;
    let expected = trailer
        .blocks
        .checked_mul(BLOCK_ENTRY_BYTES as u64)
        .and_then(|index| {
            index.checked_add(u64::from(header.table_len()) * PARTITION_ENTRY_BYTES as u64)
        });
    let fits = expected == Some(trailer.footer_len)
        && trailer.footer_offset.checked_add(trailer.footer_len) == Some(end);
    if !fits {
        return Err(format!(
            "the trailer has a footer of {} bytes at byte {}, which does not match a file of {} bytes",
            trailer.footer_len, trailer.footer_offset, file_len
        ));
    }
    Ok(trailer.footer_offset..end)
}

/// Checks the entry of a block that should start at `offset`; returns where it ends.
fn check_block(
    header: &Header,
    block: &BlockEntry,
    offset: u64,
    next_ordinal: u64,
) -> Result<u64, String> {
    if block.offset != offset {
        return Err(format!(
            "it starts at byte {}; the previous block ends at {offset}",
            block.offset
        ));
    }
    if next_ordinal <= block.first_ordinal {
        return Err(format!(
            "invalid record range {}..{next_ordinal}",
            block.first_ordinal
        ));
    }
    let lengths_fit = match block.codec {
        Codec::Stored => block.stored_len == block.raw_len,
        // Only full-size blocks and smaller are compressed, which limits the reader's buffer.
        Codec::Lz4 => block.raw_len <= BLOCK_BYTES as u64 && block.stored_len < block.raw_len,
    };
    if !lengths_fit || block.raw_len == 0 {
        return Err(format!(
            "{} stored bytes for {} raw bytes",
            block.stored_len, block.raw_len
        ));
    }
    let count = next_ordinal - block.first_ordinal;
    if let Some(stride) = header.encoding.stride()
        && count.checked_mul(stride as u64) != Some(block.raw_len)
    {
        return Err(format!(
            "{} raw bytes for {count} records of {stride} bytes",
            block.raw_len
        ));
    }
    offset
        .checked_add(block.stored_len)
        .ok_or_else(|| "the lengths overflow".into())
}
