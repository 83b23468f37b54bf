//! The rules that tie the parts of a segment file to each other and to its length.
//!
//! Owns what is checked before an offset or a length is believed: the ends of the file when it is opened, an
//! entry of the partition table and its part of the block index when that partition is read, and all of the
//! footer at once for whoever serves all of it. Does not own the checksums of blocks: each is verified when a
//! cursor enters its block.

use std::ops::Range;
use std::path::Path;

use super::error::SegmentError;
use super::format::{
    BLOCK_BYTES, BLOCK_ENTRY_BYTES, BlockEntry, Codec, Excerpt, Header, PARTITION_ENTRY_BYTES,
    PartitionEntry, TRAILER_BYTES, Trailer, table_crc,
};

/// The two ends of a file, which fit each other and its length.
#[derive(Debug)]
pub(super) struct Ends {
    pub file_len: u64,
    pub header: Header,
    pub header_len: usize,
    pub trailer: Trailer,
}

impl Ends {
    /// Reads the header at the start of `start` and the trailer at the end of `end`, or says what
    /// does not fit.
    pub(super) fn check(start: &[u8], end: &[u8], file_len: u64) -> Result<Ends, String> {
        let trailer = Trailer::decode(end)?;
        let (header, header_len) = Header::decode(start)?;
        footer_range(&header, &trailer, file_len)?;
        Ok(Ends { file_len, header, header_len, trailer })
    }

    /// The error for a file at this path, of which something else does not fit.
    #[cold]
    pub(super) fn damaged(&self, path: &Path, what: String) -> SegmentError {
        SegmentError::Damaged { path: path.to_owned(), label: self.header.label.clone(), what }
    }

    /// Where a partition stands in the table of the file at this path.
    pub(super) fn row_of(&self, path: &Path, partition: u32) -> Result<u32, SegmentError> {
        let partitions = self.header.partitions;
        if partition >= partitions {
            return Err(SegmentError::NoPartition { path: path.to_owned(), partition, partitions });
        }
        match self.header.excerpt {
            None => Ok(partition),
            Some(excerpt) if excerpt.partition == partition => Ok(0),
            Some(Excerpt { partition: held, .. }) => {
                Err(SegmentError::OtherPartition { path: path.to_owned(), partition, held })
            }
        }
    }

    /// Where the entry of a partition stands in the file; `row` counts the entries of the table.
    pub(super) fn entry_at(&self, row: u32) -> u64 {
        self.trailer.footer_offset + u64::from(row) * PARTITION_ENTRY_BYTES as u64
    }

    /// Where a partition's part of the block index stands in the file.
    pub(super) fn index_at(&self, first_block: u64) -> u64 {
        self.entry_at(self.header.table_len()) + first_block * BLOCK_ENTRY_BYTES as u64
    }

    /// Reads an entry that points to what there is, or says what does not fit.
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
                "partition {partition} has {} bytes from byte {} on in {} blocks from block {} on",
                entry.stored_len, entry.offset, entry.blocks, entry.first_block
            ));
        }
        Ok(entry)
    }

    /// Checks a partition's part of the block index.
    pub(super) fn check_index(&self, entry: &PartitionEntry, index: &[u8]) -> Result<(), String> {
        if crc32c::crc32c(index) != entry.index_crc {
            return Err("the footer's checksum of its part of the block index does not fit".into());
        }
        check_partition(&self.header, entry, index)
    }
}

/// Checks the whole footer, which has the length that its trailer says: every byte between header and footer
/// must be covered by exactly one block's checksum.
pub(super) fn check_footer(ends: &Ends, footer: &[u8]) -> Result<(), String> {
    let Ends { header, header_len, trailer, .. } = ends;
    let (table, index) = footer.split_at(header.table_len() as usize * PARTITION_ENTRY_BYTES);
    if table_crc(table) != trailer.table_crc {
        return Err("the footer's checksum of the partition entries does not fit".into());
    }
    let (mut offset, mut block, mut records, mut raw_len) = (*header_len as u64, 0u64, 0u64, 0u64);
    for (row, bytes) in (0..).zip(table.chunks_exact(PARTITION_ENTRY_BYTES)) {
        let entry = ends.entry(row, bytes)?;
        if (entry.offset, entry.first_block) != (offset, block) {
            return Err(format!(
                "partition {row} starts at block {}, byte {}",
                entry.first_block, entry.offset
            ));
        }
        let own = &index[block as usize * BLOCK_ENTRY_BYTES..][..entry.index_len()];
        ends.check_index(&entry, own).map_err(|what| format!("partition {row}: {what}"))?;
        offset += entry.stored_len;
        block += entry.blocks;
        records = records.checked_add(entry.records).ok_or("the numbers of records overflow")?;
        raw_len = raw_len.checked_add(entry.raw_len).ok_or("the raw lengths overflow")?;
    }
    let found = (block, offset, records, raw_len);
    let said = (trailer.blocks, trailer.footer_offset, trailer.records, trailer.raw_len);
    if found != said {
        return Err(format!(
            "the partitions have {} blocks, which end at byte {}, and {} records of {} raw bytes; the trailer says \
             {}, {}, {} and {}",
            found.0, found.1, found.2, found.3, said.0, said.1, said.2, said.3
        ));
    }
    Ok(())
}

/// Checks the index of one partition on its own: entries that follow each other from `entry.offset` on, each
/// where the one before ended.
pub(super) fn check_partition(header: &Header, entry: &PartitionEntry, index: &[u8]) -> Result<(), String> {
    let end = (index.len() / BLOCK_ENTRY_BYTES) as u64;
    if entry.blocks != end || (end == 0) != (entry.records == 0) {
        return Err(format!("{} records in {} blocks, of which {end} are here", entry.records, entry.blocks));
    }
    let block_at = |at: u64| {
        BlockEntry::decode(&index[at as usize * BLOCK_ENTRY_BYTES..])
            .ok_or_else(|| format!("block {at}: unknown codec"))
    };
    let first = header.first_ordinal();
    let end_ordinal = first.checked_add(entry.records).ok_or("the numbers of records overflow")?;
    let (mut offset, mut raw_len) = (entry.offset, 0u64);
    for at in 0..end {
        let block = block_at(at)?;
        let next = if at + 1 < end { block_at(at + 1)?.first_ordinal } else { end_ordinal };
        if raw_len == 0 && block.first_ordinal != first {
            return Err(format!("it starts at record {}, not {first}", block.first_ordinal));
        }
        offset = check_block(header, &block, offset, next).map_err(|what| format!("block {at}: {what}"))?;
        raw_len = raw_len.checked_add(block.raw_len).ok_or("the raw lengths overflow")?;
    }
    if entry.stored_len != offset - entry.offset || entry.raw_len != raw_len {
        return Err(format!("its blocks do not add up to {} bytes", entry.stored_len));
    }
    Ok(())
}

/// Where the footer lies in a file of `file_len` bytes, the trailer included, if that is where it can lie.
pub(super) fn footer_range(header: &Header, trailer: &Trailer, file_len: u64) -> Result<Range<u64>, String> {
    let end = file_len - TRAILER_BYTES as u64;
    let expected = trailer
        .blocks
        .checked_mul(BLOCK_ENTRY_BYTES as u64)
        .and_then(|index| index.checked_add(u64::from(header.table_len()) * PARTITION_ENTRY_BYTES as u64));
    let fits = expected == Some(trailer.footer_len)
        && trailer.footer_offset.checked_add(trailer.footer_len) == Some(end);
    if !fits {
        return Err(format!(
            "the trailer says a footer of {} bytes at byte {}, which does not fit a file of {} bytes",
            trailer.footer_len, trailer.footer_offset, file_len
        ));
    }
    Ok(trailer.footer_offset..end)
}

/// Checks the entry of a block that should begin at `offset`, and says where it ends.
fn check_block(header: &Header, block: &BlockEntry, offset: u64, next_ordinal: u64) -> Result<u64, String> {
    if block.offset != offset {
        return Err(format!("it starts at byte {}, the one before ends at {offset}", block.offset));
    }
    if next_ordinal <= block.first_ordinal {
        return Err(format!("records {}..{next_ordinal} are not a range", block.first_ordinal));
    }
    let lengths_fit = match block.codec {
        Codec::Stored => block.stored_len == block.raw_len,
        // Only blocks of the ordinary size are compressed: reading one never allocates more than that.
        Codec::Lz4 => block.raw_len <= BLOCK_BYTES as u64 && block.stored_len < block.raw_len,
    };
    if !lengths_fit || block.raw_len == 0 {
        return Err(format!("{} stored bytes for {} raw bytes", block.stored_len, block.raw_len));
    }
    let count = next_ordinal - block.first_ordinal;
    if let Some(stride) = header.encoding.stride()
        && count.checked_mul(stride as u64) != Some(block.raw_len)
    {
        return Err(format!("{} raw bytes are not {count} records of {stride} bytes", block.raw_len));
    }
    offset.checked_add(block.stored_len).ok_or_else(|| "the lengths overflow".into())
}
