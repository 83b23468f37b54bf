//! Writing a segment: splits records into blocks, compresses and checksums them, and appends index, footer and
//! trailer. The caller passes records in final order: partitions ascending, keys sorted within each.

use std::path::{Path, PathBuf};

use super::destination::SegmentDestination;
use super::error::WriteError;
use super::format::{
    BLOCK_BYTES, BLOCK_ENTRY_BYTES, BlockCompression, BlockEntry, Codec, Excerpt, Header,
    PARTITION_ENTRY_BYTES, PartitionEntry, Trailer, records_digest, table_crc,
};
use super::seal::Seal;
use crate::activity::block_moved;
use crate::key;
use crate::record::{HEADER_MAX, RecordEncoding};

/// A sealed segment file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedSegment {
    pub path: PathBuf,
    /// Length of the file in bytes.
    pub file_len: u64,
    /// Records in all partitions.
    pub records: u64,
    /// Encoded bytes of all records, before compression.
    pub raw_len: u64,
    pub partitions: u32,
    /// Whether `path` is a link to a file in memory that the worker keeps.
    pub is_in_memory: bool,
    /// The trailer's checksum, which covers the whole file.
    pub crc: u32,
    /// The digest of the records of all partitions in their order. It does not depend on the attempt, on spills or
    /// on where the file is. `None` if the file is a part of a segment, or was not written here.
    pub digest: Option<u64>,
}

/// Settings shared by all segments of a task.
#[derive(Debug, Clone)]
pub(crate) struct SegmentShape {
    pub encoding: RecordEncoding,
    pub compression: BlockCompression,
    pub partitions: u32,
    /// The only partition of the file; `None` for all partitions.
    pub only: Option<u32>,
    pub label: String,
}

/// The writer of one segment file.
pub(crate) struct SegmentWriter {
    pub(crate) shape: SegmentShape,
    destination: SegmentDestination,
    target: PathBuf,
    /// Complete blocks and, from `block_start` on, the open one.
    buffer: Vec<u8>,
    buffer_bytes: usize,
    block_start: usize,
    /// Free bytes of the open block; 0 if there is none.
    block_room: usize,
    /// The open block's index entry, still without lengths, checksum and codec.
    block: BlockEntry,
    compressed: Vec<u8>,
    /// File offset of the start of the buffer.
    offset: u64,
    partition: PartitionEntry,
    table: Vec<u8>,
    index: Vec<u8>,
    blocks: u64,
    records: u64,
    raw_len: u64,
}

impl SegmentWriter {
    /// Starts a segment, in memory if `memory` is given and large enough. `buffer_bytes` is the size of a
    /// write, at least one block.
    pub(crate) fn create(
        target: &Path,
        memory: Option<&(PathBuf, u64)>,
        shape: SegmentShape,
        buffer_bytes: usize,
    ) -> Result<Self, WriteError> {
        let destination = SegmentDestination::create(target, memory)?;
        let buffer_bytes = buffer_bytes.max(BLOCK_BYTES);
        let header = Header {
            encoding: shape.encoding,
            compression: shape.compression,
            partitions: shape.partitions,
            excerpt: shape.only.map(|partition| Excerpt {
                partition,
                first_block: 0,
                first_ordinal: 0,
            }),
            label: shape.label.clone(),
        };
        let mut buffer = Vec::with_capacity(buffer_bytes + BLOCK_BYTES);
        buffer.extend_from_slice(&header.encode());
        let partition = PartitionEntry {
            offset: buffer.len() as u64,
            ..PartitionEntry::default()
        };
        Ok(SegmentWriter {
            shape,
            destination,
            target: target.to_owned(),
            block_start: buffer.len(),
            buffer,
            buffer_bytes,
            block_room: 0,
            block: BlockEntry::default(),
            compressed: Vec::new(),
            offset: 0,
            partition,
            table: Vec::new(),
            index: Vec::new(),
            blocks: 0,
            records: 0,
            raw_len: 0,
        })
    }

    /// Ends the current partition and starts the next one.
    pub(crate) fn next_partition(&mut self) -> Result<(), WriteError> {
        self.close_block()?;
        let row = self.rows();
        self.partition.blocks = self.blocks - self.partition.first_block;
        let index = &self.index[self.partition.first_block as usize * BLOCK_ENTRY_BYTES..];
        self.partition.index_crc = crc32c::crc32c(index);
        self.partition
            .encode(self.shape.only.unwrap_or(row), &mut self.table);
        self.records += self.partition.records;
        self.raw_len += self.partition.raw_len;
        let offset = self.offset + self.buffer.len() as u64;
        self.partition = PartitionEntry {
            offset,
            first_block: self.blocks,
            ..PartitionEntry::default()
        };
        Ok(())
    }

    /// Returns the number of finished partitions.
    fn rows(&self) -> u32 {
        (self.table.len() / PARTITION_ENTRY_BYTES) as u32
    }

    /// Adds an encoded record to the current partition.
    #[inline]
    pub(crate) fn append_encoded(&mut self, record: &[u8]) -> Result<(), WriteError> {
        if record.len() > self.block_room {
            let extent = self
                .shape
                .encoding
                .parse(record)
                .expect("an encoded record is complete");
            let key = &record[extent.key..extent.value];
            let value = &record[extent.value..extent.end];
            return self.append_to_new_block(key, value);
        }
        self.buffer.extend_from_slice(record);
        self.block_room -= record.len();
        self.partition.records += 1;
        Ok(())
    }

    #[inline]
    pub(crate) fn append(&mut self, key: &[u8], value: &[u8]) -> Result<(), WriteError> {
        if self.shape.encoding.encoded_len(key.len(), value.len()) > self.block_room {
            return self.append_to_new_block(key, value);
        }
        self.extend(key, value);
        Ok(())
    }

    fn extend(&mut self, key: &[u8], value: &[u8]) {
        let before = self.buffer.len();
        let mut header = [0; HEADER_MAX];
        let header_len = self
            .shape
            .encoding
            .header(key.len(), value.len(), &mut header);
        self.buffer.extend_from_slice(&header[..header_len]);
        self.buffer.extend_from_slice(key);
        self.buffer.extend_from_slice(value);
        self.block_room -= self.buffer.len() - before;
        self.partition.records += 1;
    }

    #[cold]
    #[inline(never)]
    fn append_to_new_block(&mut self, key: &[u8], value: &[u8]) -> Result<(), WriteError> {
        self.close_block()?;
        self.block.offset = self.offset + self.buffer.len() as u64;
        self.block.first_ordinal = self.partition.records;
        self.block.key_prefix = key::head(key);
        if self.shape.encoding.encoded_len(key.len(), value.len()) > BLOCK_BYTES {
            return self.write_jumbo(key, value);
        }
        self.block_room = BLOCK_BYTES;
        self.extend(key, value);
        Ok(())
    }

    /// Writes a record longer than a block directly to the file, without the buffer.
    fn write_jumbo(&mut self, key: &[u8], value: &[u8]) -> Result<(), WriteError> {
        self.flush()?;
        let mut header = [0; HEADER_MAX];
        let header_len = self
            .shape
            .encoding
            .header(key.len(), value.len(), &mut header);
        let mut crc = 0;
        let mut len = 0;
        for part in [&header[..header_len], key, value] {
            self.destination.write(part)?;
            crc = crc32c::crc32c_append(crc, part);
            len += part.len();
        }
        self.offset += len as u64;
        self.partition.records += 1;
        self.add_block(len, len, crc, Codec::Stored);
        Ok(())
    }

    fn close_block(&mut self) -> Result<(), WriteError> {
        let raw_len = self.buffer.len() - self.block_start;
        self.block_room = 0;
        if raw_len == 0 {
            return Ok(());
        }
        let mut codec = Codec::Stored;
        if self.shape.compression == BlockCompression::Lz4 {
            codec = self.compress_block(raw_len);
        }
        let stored = &self.buffer[self.block_start..];
        let stored_len = stored.len();
        let crc = crc32c::crc32c(stored);
        self.add_block(raw_len, stored_len, crc, codec);
        self.block_start = self.buffer.len();
        if self.buffer.len() >= self.buffer_bytes {
            self.flush()
        } else {
            Ok(())
        }
    }

    /// Compresses the open block if that makes it shorter than 0.9 of its size.
    fn compress_block(&mut self, raw_len: usize) -> Codec {
        self.compressed
            .resize(lz4_flex::block::get_maximum_output_size(BLOCK_BYTES), 0);
        let raw = &self.buffer[self.block_start..];
        match lz4_flex::block::compress_into(raw, &mut self.compressed) {
            Ok(len) if len * 10 < raw_len * 9 => {
                self.buffer.truncate(self.block_start);
                self.buffer.extend_from_slice(&self.compressed[..len]);
                Codec::Lz4
            }
            // The only possible error is a full output buffer: the block did not shrink.
            _ => Codec::Stored,
        }
    }

    fn add_block(&mut self, raw_len: usize, stored_len: usize, crc: u32, codec: Codec) {
        let block = BlockEntry {
            raw_len: raw_len as u64,
            stored_len: stored_len as u64,
            crc,
            codec,
            ..self.block
        };
        block.encode(&mut self.index);
        block_moved();
        self.blocks += 1;
        self.partition.raw_len += block.raw_len;
        self.partition.stored_len += block.stored_len;
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        self.destination.write(&self.buffer)?;
        self.offset += self.buffer.len() as u64;
        self.buffer.clear();
        self.block_start = 0;
        Ok(())
    }

    /// Ends the last partition, writes footer and trailer, and publishes the file.
    pub(crate) fn finish(mut self, seal: Seal) -> Result<SealedSegment, WriteError> {
        self.next_partition()?;
        // Trailing partitions without records have table entries, too.
        let rows = self.shape.only.map_or(self.shape.partitions, |_| 1);
        while self.rows() < rows {
            self.next_partition()?;
        }
        let trailer = Trailer {
            footer_offset: self.offset + self.buffer.len() as u64,
            footer_len: (self.table.len() + self.index.len()) as u64,
            records: self.records,
            blocks: self.blocks,
            raw_len: self.raw_len,
            table_crc: table_crc(&self.table),
        };
        let digest = records_digest(&self.table, &self.index);
        self.buffer.extend_from_slice(&self.table);
        self.buffer.extend_from_slice(&self.index);
        self.buffer.extend_from_slice(&trailer.encode());
        self.flush()?;
        let is_in_memory = self.destination.publish(seal)?;
        Ok(SealedSegment {
            path: self.target,
            file_len: self.offset,
            records: self.records,
            raw_len: self.raw_len,
            partitions: self.shape.partitions,
            is_in_memory,
            crc: trailer.crc(),
            digest: Some(digest),
        })
    }
}
