//! The validated index of a segment file, read without mapping the file: a server must survive a file that
//! is truncated while it is served.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::check::{Ends, check_footer};
use super::error::{SegmentError, damaged};
use super::extent::PartitionExtent;
use super::format::{
    BLOCK_ENTRY_BYTES, BlockEntry, Excerpt, HEADER_BYTES_MAX, Header, PARTITION_ENTRY_BYTES,
    PartitionEntry, TRAILER_BYTES,
};

/// Enough for nearly every header.
const START_BYTES: u64 = 256;

/// The header and footer of a sealed segment file.
#[derive(Debug)]
pub struct SegmentIndex {
    path: PathBuf,
    ends: Ends,
    footer: Vec<u8>,
}

impl SegmentIndex {
    /// Reads and validates header, footer and trailer. `path` is for errors.
    ///
    /// # Errors
    /// `Open` if the file cannot be read, `Damaged` if it is not a complete segment with all partitions.
    pub fn read(file: &File, path: &Path) -> Result<SegmentIndex, SegmentError> {
        let unreadable = |source| SegmentError::Open {
            path: path.to_owned(),
            source,
        };
        let ends = read_ends(file, path)?;
        let damaged = |what| ends.damaged(path, what);
        if ends.header.excerpt.is_some() {
            return Err(damaged(
                "it has one partition only; expected the output of a map task".into(),
            ));
        }
        // Bounded by the length of this local file.
        let footer = read_range(file, ends.trailer.footer_offset, ends.trailer.footer_len)
            .map_err(unreadable)?;
        check_footer(&ends, &footer).map_err(damaged)?;
        Ok(SegmentIndex {
            path: path.to_owned(),
            ends,
            footer,
        })
    }

    /// Returns the attempt that wrote the segment.
    pub fn label(&self) -> &str {
        &self.ends.header.label
    }

    pub fn partitions(&self) -> u32 {
        self.ends.header.partitions
    }

    /// Returns the memory in use.
    pub fn heap_bytes(&self) -> usize {
        self.footer.len() + self.ends.header.label.len() + self.path.as_os_str().len()
    }

    /// Returns the extent of a partition's blocks from one block on; the partition's number of blocks stands for
    /// its end.
    ///
    /// # Errors
    /// `NoPartition` or `NoBlock` if they do not exist.
    pub fn extent(&self, partition: u32, from_block: u64) -> Result<PartitionExtent, SegmentError> {
        let whole = self.partition(partition)?;
        if from_block > whole.blocks {
            let path = self.path.clone();
            return Err(SegmentError::NoBlock {
                path,
                partition,
                block: from_block,
                blocks: whole.blocks,
            });
        }
        let entries = self.entries(&whole);
        let index = entries[from_block as usize * BLOCK_ENTRY_BYTES..].to_vec();
        let mut rest = whole;
        let mut excerpt = Excerpt {
            partition,
            first_block: from_block,
            first_ordinal: 0,
        };
        if from_block > 0 {
            let skipped = entries
                .chunks_exact(BLOCK_ENTRY_BYTES)
                .take(from_block as usize);
            for block in skipped.filter_map(BlockEntry::decode) {
                rest.offset += block.stored_len;
                rest.stored_len -= block.stored_len;
                rest.raw_len -= block.raw_len;
            }
            excerpt.first_ordinal =
                BlockEntry::decode_first(&index).map_or(whole.records, |block| block.first_ordinal);
            rest.records -= excerpt.first_ordinal;
        }
        Ok(PartitionExtent::new(
            &self.ends.header,
            excerpt,
            rest,
            index,
        ))
    }

    fn partition(&self, partition: u32) -> Result<PartitionEntry, SegmentError> {
        let row = self.ends.row_of(&self.path, partition)?;
        let bytes = &self.footer[row as usize * PARTITION_ENTRY_BYTES..];
        self.ends
            .entry(row, bytes)
            .map_err(|what| self.ends.damaged(&self.path, what))
    }

    fn entries(&self, entry: &PartitionEntry) -> &[u8] {
        let index = &self.footer[self.partitions() as usize * PARTITION_ENTRY_BYTES..];
        &index[entry.first_block as usize * BLOCK_ENTRY_BYTES..][..entry.index_len()]
    }
}

/// Reads and checks header and trailer.
pub(super) fn read_ends(file: &File, path: &Path) -> Result<Ends, SegmentError> {
    let unreadable = |source| SegmentError::Open {
        path: path.to_owned(),
        source,
    };
    let file_len = file.metadata().map_err(unreadable)?.len();
    let mut start = read_range(file, 0, file_len.min(START_BYTES)).map_err(unreadable)?;
    if Header::is_cut(&start) && file_len > START_BYTES {
        start = read_range(file, 0, file_len.min(HEADER_BYTES_MAX as u64)).map_err(unreadable)?;
    }
    let end_len = file_len.min(TRAILER_BYTES as u64);
    let end = read_range(file, file_len - end_len, end_len).map_err(unreadable)?;
    Ends::check(&start, &end, file_len).map_err(|what| damaged(path, &start, what))
}

pub(super) fn read_range(file: &File, offset: u64, len: u64) -> io::Result<Vec<u8>> {
    let len = usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
    let mut bytes = vec![0; len];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}
