//! The rules that tie the parts of a segment file to each other and to its length.
//!
//! Owns the one pass over the footer that `Segment::open` makes, after which every offset and length in it
//! can be trusted. Does not own the checksums of blocks: each is verified when a cursor enters its block.

use std::ops::Range;

use super::format::{
    BLOCK_BYTES, BLOCK_ENTRY_BYTES, BlockEntry, Codec, Header, PARTITION_ENTRY_BYTES, PartitionEntry,
    TRAILER_BYTES, Trailer,
};

/// A file's parts, found and checked.
pub(super) struct Parts {
    pub header: Header,
    pub trailer: Trailer,
}

/// Checks everything but the blocks' contents, or says what does not fit.
pub(super) fn check(file: &[u8]) -> Result<Parts, String> {
    let trailer = Trailer::decode(file)?;
    let (header, header_len) = Header::decode(file)?;
    let footer = footer_range(&header, &trailer, file.len() as u64)?;
    check_footer(&header, header_len, &trailer, &file[footer.start as usize..footer.end as usize])?;
    Ok(Parts { header, trailer })
}

/// Checks a footer that has the length its trailer says against the rest of the file.
pub(super) fn check_footer(
    header: &Header,
    header_len: usize,
    trailer: &Trailer,
    footer: &[u8],
) -> Result<(), String> {
    if crc32c::crc32c(footer) != trailer.footer_crc {
        return Err("the footer's checksum does not fit".into());
    }
    let (table, index) = footer.split_at(header.table_len() as usize * PARTITION_ENTRY_BYTES);
    let mut walk = Walk { header, index, offset: header_len as u64, block: 0 };
    let mut records = 0u64;
    for (partition, entry) in table.chunks_exact(PARTITION_ENTRY_BYTES).enumerate() {
        let entry = PartitionEntry::decode(entry);
        let next = table.get((partition + 1) * PARTITION_ENTRY_BYTES..).filter(|rest| !rest.is_empty());
        let end = next.map_or(trailer.blocks, |rest| PartitionEntry::decode(rest).first_block);
        walk.partition(&entry, end).map_err(|what| format!("partition {partition}: {what}"))?;
        records = records.checked_add(entry.records).ok_or("the numbers of records overflow")?;
    }
    if walk.block != trailer.blocks || walk.offset != trailer.footer_offset {
        return Err(format!(
            "the blocks end at byte {}, the footer starts at {}",
            walk.offset, trailer.footer_offset
        ));
    }
    if records != trailer.records {
        return Err(format!("the partitions hold {records} records, the trailer says {}", trailer.records));
    }
    Ok(())
}

/// Checks the index of one partition on its own: entries that follow each other from `entry.offset` on.
pub(super) fn check_partition(header: &Header, entry: &PartitionEntry, index: &[u8]) -> Result<(), String> {
    let blocks = (index.len() / BLOCK_ENTRY_BYTES) as u64;
    Walk { header, index, offset: entry.offset, block: 0 }.partition(entry, blocks)
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

/// The walk over all blocks in file order: each must start where the one before ended, so that every byte
/// between the header and the footer is covered by exactly one block's checksum.
struct Walk<'a> {
    header: &'a Header,
    index: &'a [u8],
    offset: u64,
    block: u64,
}

impl Walk<'_> {
    fn partition(&mut self, entry: &PartitionEntry, end: u64) -> Result<(), String> {
        let blocks = (self.index.len() / BLOCK_ENTRY_BYTES) as u64;
        if entry.first_block != self.block || end < self.block || end > blocks || entry.offset != self.offset
        {
            return Err(format!("it starts at block {}, byte {}", entry.first_block, entry.offset));
        }
        if (end == self.block) != (entry.records == 0) {
            return Err(format!("{} records in {} blocks", entry.records, end - self.block));
        }
        let start = self.offset;
        let first = self.header.first_ordinal();
        let end_ordinal = first.checked_add(entry.records).ok_or("the numbers of records overflow")?;
        let mut raw_len = 0u64;
        while self.block < end {
            let block = self.entry(self.block)?;
            let next =
                if self.block + 1 < end { self.entry(self.block + 1)?.first_ordinal } else { end_ordinal };
            if raw_len == 0 && block.first_ordinal != first {
                return Err(format!("it starts at record {}, not {first}", block.first_ordinal));
            }
            self.block_entry(&block, next).map_err(|what| format!("block {}: {what}", self.block))?;
            raw_len = raw_len.checked_add(block.raw_len).ok_or("the raw lengths overflow")?;
            self.block += 1;
        }
        if entry.stored_len != self.offset - start || entry.raw_len != raw_len {
            return Err(format!("its blocks do not add up to {} bytes", entry.stored_len));
        }
        Ok(())
    }

    fn entry(&self, block: u64) -> Result<BlockEntry, String> {
        BlockEntry::decode(&self.index[block as usize * BLOCK_ENTRY_BYTES..])
            .ok_or_else(|| format!("block {block}: unknown codec"))
    }

    fn block_entry(&mut self, block: &BlockEntry, next_ordinal: u64) -> Result<(), String> {
        if block.offset != self.offset {
            return Err(format!(
                "it starts at byte {}, the one before ends at {}",
                block.offset, self.offset
            ));
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
        if let Some(stride) = self.header.encoding.stride()
            && count.checked_mul(stride as u64) != Some(block.raw_len)
        {
            return Err(format!("{} raw bytes are not {count} records of {stride} bytes", block.raw_len));
        }
        self.offset = self.offset.checked_add(block.stored_len).ok_or("the lengths overflow")?;
        Ok(())
    }
}
