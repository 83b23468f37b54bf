//! Writing a segment file from blocks that come from elsewhere.
//!
//! Owns the file of one partition while its blocks arrive in pieces of any size: each block is checked
//! against its checksum while it is in the cache, nothing is decoded, and what is whole is known, so that a
//! broken fetch goes on with the next block. Does not own where the bytes come from.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::extent::PartitionExtent;
use super::format::{BlockEntry, PARTITION_ENTRY_BYTES, PartitionEntry, Trailer, table_crc};
use super::seal::{PartialFile, Seal};
use super::writer::{SealedSegment, WriteError};

/// A segment could not be put together.
#[derive(Debug, thiserror::Error)]
pub enum AssemblyError {
    /// A block is not what was sealed; the assembly stands before it.
    #[error("the checksum of block {block} of partition {partition} of {label} does not fit")]
    Checksum {
        /// The attempt that wrote the segment.
        label: String,
        partition: u32,
        /// The block, counted in the partition.
        block: u64,
    },
    /// More came than the index describes.
    #[error("{bytes} bytes more than partition {partition} of {label} has")]
    Surplus {
        /// The attempt that wrote the segment.
        label: String,
        partition: u32,
        /// How many more.
        bytes: u64,
    },
    /// It was to be sealed before everything had come.
    #[error("{bytes} bytes of partition {partition} of {label} are missing")]
    Incomplete {
        /// The attempt that wrote the segment.
        label: String,
        partition: u32,
        /// How many bytes are missing.
        bytes: u64,
    },
    /// The file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// One partition of a segment on its way into a file of its own.
#[derive(Debug)]
pub struct SegmentAssembly {
    extent: PartitionExtent,
    file: File,
    partial: PartialFile,
    header_len: u64,
    /// The block that arrives, counted from the first one of the extent; none after the last one.
    number: u64,
    block: Option<BlockEntry>,
    /// Bytes of it that are here, and their checksum.
    received: u64,
    crc: u32,
    /// Bytes of the whole blocks before it.
    verified: u64,
}

impl SegmentAssembly {
    /// Creates the file under its temporary name; blocks are expected from the extent's first one on.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(target: &Path, extent: PartitionExtent) -> Result<SegmentAssembly, WriteError> {
        let partial = PartialFile::of(target);
        let file = partial.create()?;
        let header = extent.header.encode();
        let assembly = SegmentAssembly {
            block: extent.block(0),
            extent,
            file,
            partial,
            header_len: header.len() as u64,
            number: 0,
            received: 0,
            crc: 0,
            verified: 0,
        };
        assembly.write_at(&header, 0)?;
        Ok(assembly)
    }

    pub fn extent(&self) -> &PartitionExtent {
        &self.extent
    }

    /// The first block that is not whole here, counted in the partition: where a broken fetch goes on.
    pub fn next_block(&self) -> u64 {
        self.extent.first_block() + self.number
    }

    /// Bytes that are still to come.
    pub fn missing(&self) -> u64 {
        self.extent.entry.stored_len - self.verified - self.received
    }

    /// Takes in the next bytes, which need not end where a block does.
    ///
    /// # Errors
    /// `Checksum` when a block is wrong: what came of it and after it is dropped. `Surplus`, `Write`.
    pub fn accept(&mut self, bytes: &[u8]) -> Result<(), AssemblyError> {
        let surplus = (bytes.len() as u64).saturating_sub(self.missing());
        if surplus > 0 {
            let (label, partition) = self.name();
            return Err(AssemblyError::Surplus { label, partition, bytes: surplus });
        }
        self.write_at(bytes, self.header_len + self.verified + self.received)?;
        let mut rest = bytes;
        while let (Some(block), false) = (self.block, rest.is_empty()) {
            let open = block.stored_len - self.received;
            let piece;
            (piece, rest) = rest.split_at(rest.len().min(usize::try_from(open).unwrap_or(usize::MAX)));
            self.crc = crc32c::crc32c_append(self.crc, piece);
            self.received += piece.len() as u64;
            if self.received == block.stored_len {
                self.end_block(&block)?;
            }
        }
        Ok(())
    }

    fn end_block(&mut self, block: &BlockEntry) -> Result<(), AssemblyError> {
        let fits = self.crc == block.crc;
        self.drop_open_block();
        if !fits {
            let (label, partition) = self.name();
            return Err(AssemblyError::Checksum { label, partition, block: self.next_block() });
        }
        self.verified += block.stored_len;
        self.number += 1;
        self.block = self.extent.block(self.number);
        Ok(())
    }

    /// Forgets what came of a block that is not whole: the next bytes start it anew.
    pub fn drop_open_block(&mut self) {
        (self.received, self.crc) = (0, 0);
    }

    /// Gives the complete file its name.
    ///
    /// # Errors
    /// `Incomplete` when blocks are missing, `Write`.
    pub fn seal(mut self) -> Result<SealedSegment, AssemblyError> {
        let bytes = self.missing();
        if bytes > 0 {
            let (label, partition) = self.name();
            return Err(AssemblyError::Incomplete { label, partition, bytes });
        }
        let footer = self.footer();
        let footer_offset = self.header_len + self.verified;
        let entry = self.extent.entry;
        let trailer = Trailer {
            footer_offset,
            footer_len: footer.len() as u64,
            records: entry.records,
            blocks: self.number,
            raw_len: entry.raw_len,
            table_crc: table_crc(&footer[..PARTITION_ENTRY_BYTES]),
        };
        let end = [footer.as_slice(), &trailer.encode()].concat();
        self.write_at(&end, footer_offset)?;
        self.partial.publish(&self.file, Seal { durable: false })?;
        Ok(SealedSegment {
            path: self.partial.target.clone(),
            file_len: footer_offset + end.len() as u64,
            records: entry.records,
            raw_len: entry.raw_len,
            partitions: self.extent.partitions(),
            is_in_memory: false,
            crc: trailer.crc(),
        })
    }

    /// The index as it was sealed first, but for the places, which are those in this file.
    fn footer(&self) -> Vec<u8> {
        let mut index = Vec::new();
        let moved_from = self.extent.entry.offset;
        for number in 0..self.number {
            if let Some(block) = self.extent.block(number) {
                let offset = block.offset - moved_from + self.header_len;
                BlockEntry { offset, ..block }.encode(&mut index);
            }
        }
        let entry = PartitionEntry {
            offset: self.header_len,
            index_crc: crc32c::crc32c(&index),
            ..self.extent.entry
        };
        let mut footer = Vec::with_capacity(PARTITION_ENTRY_BYTES + index.len());
        entry.encode(self.extent.partition(), &mut footer);
        footer.extend_from_slice(&index);
        footer
    }

    fn name(&self) -> (String, u32) {
        (self.extent.label().to_owned(), self.extent.partition())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), WriteError> {
        let written = self.file.write_all_at(bytes, offset);
        written.map_err(|source: io::Error| WriteError::new("write", &self.partial.path, source))
    }
}
