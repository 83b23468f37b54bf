//! The validated header and footer of a segment file, read without mapping it.
//!
//! Owns what a server needs to answer for one partition: it must survive a file that is cut while it is
//! served, which a mapping does not. Does not own the blocks, which nobody looks into on their way out, nor
//! who asks for them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::check::{check_footer, footer_range};
use super::error::SegmentError;
use super::extent::PartitionExtent;
use super::format::{
    BLOCK_ENTRY_BYTES, BlockEntry, HEADER_BYTES_MAX, Header, PARTITION_ENTRY_BYTES, PartitionEntry,
    TRAILER_BYTES, Trailer,
};

/// What a sealed segment file says of itself.
#[derive(Debug)]
pub struct SegmentIndex {
    path: PathBuf,
    header: Header,
    trailer: Trailer,
    footer: Vec<u8>,
}

impl SegmentIndex {
    /// Reads and validates header, footer and trailer of a sealed file; `path` is for errors.
    ///
    /// # Errors
    /// `Open` when the file cannot be read, `Damaged` when it is not a whole segment or holds one partition
    /// only.
    pub fn read(file: &File, path: &Path) -> Result<SegmentIndex, SegmentError> {
        let unreadable = |source| SegmentError::Open { path: path.to_owned(), source };
        let damaged = |label: &str, what: String| SegmentError::Damaged {
            path: path.to_owned(),
            label: label.to_owned(),
            what,
        };
        let file_len = file.metadata().map_err(unreadable)?.len();
        let start = read_range(file, 0, file_len.min(HEADER_BYTES_MAX as u64)).map_err(unreadable)?;
        let unknown = "an unknown attempt";
        let (header, header_len) = Header::decode(&start).map_err(|what| damaged(unknown, what))?;
        let damaged = |what| damaged(&header.label, what);
        if header.excerpt.is_some() {
            return Err(damaged("it holds one partition only, so it is not a map's output".into()));
        }
        let end_len = file_len.min(TRAILER_BYTES as u64);
        let end = read_range(file, file_len - end_len, end_len).map_err(unreadable)?;
        let trailer = Trailer::decode(&end).map_err(damaged)?;
        let range = footer_range(&header, &trailer, file_len).map_err(damaged)?;
        // No longer than the file, which is this machine's own.
        let footer = read_range(file, range.start, range.end - range.start).map_err(unreadable)?;
        check_footer(&header, header_len, &trailer, &footer).map_err(damaged)?;
        Ok(SegmentIndex { path: path.to_owned(), header, trailer, footer })
    }

    /// The attempt that wrote the segment.
    pub fn label(&self) -> &str {
        &self.header.label
    }

    pub fn partitions(&self) -> u32 {
        self.header.partitions
    }

    /// Bytes of memory that it takes.
    pub fn heap_bytes(&self) -> usize {
        self.footer.len() + self.header.label.len() + self.path.as_os_str().len()
    }

    /// Where the blocks of a partition lie, and what is in them, from one block on; the partition's number of
    /// blocks stands for its end.
    ///
    /// # Errors
    /// `NoPartition` or `NoBlock` when there are fewer.
    pub fn extent(&self, partition: u32, from_block: u64) -> Result<PartitionExtent, SegmentError> {
        let (whole, blocks) = self.partition(partition)?;
        if from_block > blocks {
            let path = self.path.clone();
            return Err(SegmentError::NoBlock { path, partition, block: from_block, blocks });
        }
        let entries = self.entries(whole.first_block, blocks);
        let index = entries[from_block as usize * BLOCK_ENTRY_BYTES..].to_vec();
        let mut rest = PartitionEntry { first_block: 0, ..whole };
        let mut first_ordinal = 0;
        if from_block > 0 {
            let skipped = entries.chunks_exact(BLOCK_ENTRY_BYTES).take(from_block as usize);
            for block in skipped.filter_map(BlockEntry::decode) {
                rest.offset += block.stored_len;
                rest.stored_len -= block.stored_len;
                rest.raw_len -= block.raw_len;
            }
            first_ordinal =
                BlockEntry::decode_first(&index).map_or(whole.records, |block| block.first_ordinal);
            rest.records -= first_ordinal;
        }
        Ok(PartitionExtent::new(&self.header, partition, from_block, first_ordinal, rest, index))
    }

    /// A partition's entry and its number of blocks.
    fn partition(&self, partition: u32) -> Result<(PartitionEntry, u64), SegmentError> {
        let partitions = self.header.partitions;
        if partition >= partitions {
            return Err(SegmentError::NoPartition { path: self.path.clone(), partition, partitions });
        }
        let at = |row: u32| PartitionEntry::decode(&self.footer[row as usize * PARTITION_ENTRY_BYTES..]);
        let entry = at(partition);
        let end =
            if partition + 1 < partitions { at(partition + 1).first_block } else { self.trailer.blocks };
        Ok((entry, end - entry.first_block))
    }

    fn entries(&self, first: u64, count: u64) -> &[u8] {
        let index = &self.footer[self.header.partitions as usize * PARTITION_ENTRY_BYTES..];
        &index[first as usize * BLOCK_ENTRY_BYTES..][..count as usize * BLOCK_ENTRY_BYTES]
    }
}

fn read_range(file: &File, offset: u64, len: u64) -> io::Result<Vec<u8>> {
    let len = usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
    let mut bytes = vec![0; len];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}
