//! Writing a segment file from blocks that arrive in pieces of any size. Each block is verified against its
//! checksum without decoding, so that a broken fetch continues with the next block.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::error::WriteError;
use super::extent::PartitionExtent;
use super::format::{BlockEntry, PARTITION_ENTRY_BYTES, PartitionEntry, Trailer, table_crc};
use super::seal::{PartialFile, Seal};
use super::writer::SealedSegment;

/// Why a segment could not be assembled.
#[derive(Debug, thiserror::Error)]
pub enum AssemblyError {
    /// A block is damaged; the assembly continues before it.
    #[error("checksum mismatch in block {block} of partition {partition} of {label}")]
    Checksum {
        /// The attempt that wrote the segment.
        label: String,
        partition: u32,
        /// Block number in the partition.
        block: u64,
    },
    /// More bytes arrived than the index describes.
    #[error("received {bytes} bytes more than partition {partition} of {label} has")]
    Surplus {
        /// The attempt that wrote the segment.
        label: String,
        partition: u32,
        bytes: u64,
    },
    /// `seal` was called before all bytes arrived.
    #[error("{bytes} bytes of partition {partition} of {label} are missing")]
    Incomplete {
        /// The attempt that wrote the segment.
        label: String,
        partition: u32,
        bytes: u64,
    },
    /// The file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// One partition of a segment, being received into a file of its own.
#[derive(Debug)]
pub struct SegmentAssembly {
    extent: PartitionExtent,
    file: File,
    partial: PartialFile,
    header_len: u64,
    /// The block being received, counted from the first one of the extent; `None` after the last one.
    number: u64,
    block: Option<BlockEntry>,
    /// Received bytes of the block, and their checksum.
    received: u64,
    crc: u32,
    /// Bytes of the complete blocks.
    verified: u64,
}

impl SegmentAssembly {
    /// Creates the file under its temporary name. The extent's first block is expected first.
    ///
    /// # Errors
    /// Fails if the file cannot be created.
    pub fn create(target: &Path, extent: PartitionExtent) -> Result<SegmentAssembly, WriteError> {
        let partial = PartialFile::new(target);
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

    /// Returns the first incomplete block, counted in the partition: where a broken fetch continues.
    pub fn next_block(&self) -> u64 {
        self.extent.first_block() + self.number
    }

    /// Returns the number of bytes that have not arrived.
    pub fn missing(&self) -> u64 {
        self.extent.entry.stored_len - self.verified - self.received
    }

    /// Adds the next bytes, which need not end at a block boundary.
    ///
    /// # Errors
    /// `Checksum` if a block is damaged: its bytes and the following ones are dropped. `Surplus`, `Write`.
    pub fn accept(&mut self, bytes: &[u8]) -> Result<(), AssemblyError> {
        let surplus = (bytes.len() as u64).saturating_sub(self.missing());
        if surplus > 0 {
            let (label, partition) = self.name();
            return Err(AssemblyError::Surplus {
                label,
                partition,
                bytes: surplus,
            });
        }
        self.write_at(bytes, self.header_len + self.verified + self.received)?;
        let mut rest = bytes;
        while let (Some(block), false) = (self.block, rest.is_empty()) {
            let open = block.stored_len - self.received;
            let piece;
            (piece, rest) =
                rest.split_at(rest.len().min(usize::try_from(open).unwrap_or(usize::MAX)));
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
            return Err(AssemblyError::Checksum {
                label,
                partition,
                block: self.next_block(),
            });
        }
        self.verified += block.stored_len;
        self.number += 1;
        self.block = self.extent.block(self.number);
        Ok(())
    }

    /// Drops the bytes of an incomplete block, which then has to be sent again from its start.
    pub fn drop_open_block(&mut self) {
        (self.received, self.crc) = (0, 0);
    }

    /// Completes the file and renames it to its final name.
    ///
    /// # Errors
    /// `Incomplete` if blocks are missing, `Write`.
    pub fn seal(mut self) -> Result<SealedSegment, AssemblyError> {
        let bytes = self.missing();
        if bytes > 0 {
            let (label, partition) = self.name();
            return Err(AssemblyError::Incomplete {
                label,
                partition,
                bytes,
            });
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
            digest: None,
        })
    }

    /// Returns the original index with the block offsets of this file.
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
