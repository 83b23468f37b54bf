//! The bytes of a segment file: header, partition table, block index and trailer, each with a checksum.
//!
//! ```text
//! header     magic, version, encoding, codec, checksum kind, form, partitions, [partition, first block, first ordinal],
//!            label, crc32c
//! blocks     partition 0's blocks, partition 1's blocks, ...
//! footer     one PartitionEntry per partition, one BlockEntry per block
//! trailer    footer offset and length, records, blocks, raw length, crc32c of the partition entries, crc32c of the
//!            trailer, magic
//! ```
//!
//! A reduce reads one partition only: header, trailer, its entry, its part of the block index and its blocks. So
//! each entry has its own checksum, which also covers its number and the checksum of its part of the index. The
//! cost does not grow with the number of partitions.
//!
//! Form 0 is a file with all partitions of a map's output. Form 1 is an excerpt, as a fetch writes it: one
//! partition or the end of one. Its table has one entry, which the fields in brackets describe.

use std::ops::Range;

use xxhash_rust::xxh3::Xxh3;

use crate::record::RecordEncoding;

/// Raw size of a full block. A longer record gets a jumbo block of its own.
pub(crate) const BLOCK_BYTES: usize = 128 << 10;

const HEADER_MAGIC: [u8; 8] = *b"NAPRSEG\n";
const TRAILER_MAGIC: [u8; 8] = *b"NAPSEAL\n";
const VERSION: u16 = 2;
const CHECKSUM_CRC32C: u8 = 1;
const FORM_WHOLE: u8 = 0;
const FORM_EXCERPT: u8 = 1;
const HEADER_FIXED: usize = 32;
pub(crate) const EXCERPT_BYTES: usize = 20;
pub(crate) const CRC_BYTES: usize = 4;

const LABEL_MAX: usize = 4096;
pub(crate) const HEADER_BYTES_MAX: usize = HEADER_FIXED + EXCERPT_BYTES + LABEL_MAX + CRC_BYTES;
pub(crate) const PARTITION_ENTRY_BYTES: usize = 56;
pub(crate) const BLOCK_ENTRY_BYTES: usize = 56;
pub(crate) const TRAILER_BYTES: usize = 56;
/// The fields of a partition entry that do not depend on its place in the file.
const ENTRY_LENGTHS: Range<usize> = 8..48;
/// The fields of a block entry that do not depend on its place in the file.
const BLOCK_CONTENTS: Range<usize> = 8..BLOCK_ENTRY_BYTES;
/// The part of the trailer that its checksum covers.
const TRAILER_COVERED: usize = 44;

/// Compression of blocks. A block that does not shrink below 0.9 is stored uncompressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BlockCompression {
    /// Blocks are stored uncompressed and read without a copy.
    #[default]
    None,
    /// Each block is compressed with lz4, except jumbo blocks: reading those needs no memory.
    Lz4,
}

/// The file header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub encoding: RecordEncoding,
    pub compression: BlockCompression,
    pub partitions: u32,
    /// Set if the file has blocks of one partition only.
    pub excerpt: Option<Excerpt>,
    pub label: String,
}

/// The part of a segment that an excerpt file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Excerpt {
    pub partition: u32,
    /// Number of the excerpt's first block in the partition.
    pub first_block: u64,
    /// Number of the excerpt's first record in the partition.
    pub first_ordinal: u64,
}

/// Position and size of one partition of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PartitionEntry {
    /// File offset of the first block.
    pub offset: u64,
    /// Bytes of the blocks in the file.
    pub stored_len: u64,
    /// Bytes of the blocks before compression.
    pub raw_len: u64,
    pub records: u64,
    /// Number of the first block in the file's block index.
    pub first_block: u64,
    pub blocks: u64,
    /// Checksum of the partition's part of the block index.
    pub index_crc: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Codec {
    #[default]
    Stored,
    Lz4,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct BlockEntry {
    pub offset: u64,
    pub stored_len: u64,
    pub raw_len: u64,
    /// Number of the block's first record in the partition.
    pub first_ordinal: u64,
    /// First 16 bytes of the block's first key, padded with zeros, big-endian.
    pub key_prefix: u128,
    /// Checksum of the stored bytes.
    pub crc: u32,
    pub codec: Codec,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Trailer {
    pub footer_offset: u64,
    pub footer_len: u64,
    pub records: u64,
    pub blocks: u64,
    /// Encoded bytes of all records, before compression.
    pub raw_len: u64,
    /// Checksum of the partition entries, which cover the block index.
    pub table_crc: u32,
}

/// Checks that a label fits the header.
pub(crate) fn check_label(label: &str) -> Result<(), String> {
    if label.len() > LABEL_MAX {
        return Err(format!(
            "label of {} bytes: too long (limit {LABEL_MAX})",
            label.len()
        ));
    }
    Ok(())
}

impl Header {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (kind, key, value) = match self.encoding {
            RecordEncoding::Variable => (0u8, 0, 0),
            RecordEncoding::Fixed { key, value } => (1u8, key, value),
        };
        let codec = match self.compression {
            BlockCompression::None => 0u8,
            BlockCompression::Lz4 => 1u8,
        };
        let mut bytes =
            Vec::with_capacity(HEADER_FIXED + EXCERPT_BYTES + self.label.len() + CRC_BYTES);
        bytes.extend_from_slice(&HEADER_MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        let form = if self.excerpt.is_some() {
            FORM_EXCERPT
        } else {
            FORM_WHOLE
        };
        bytes.extend_from_slice(&[kind, codec, CHECKSUM_CRC32C, form, 0, 0]);
        bytes.extend_from_slice(&key.to_le_bytes());
        bytes.extend_from_slice(&value.to_le_bytes());
        bytes.extend_from_slice(&self.partitions.to_le_bytes());
        bytes.extend_from_slice(&(self.label.len() as u32).to_le_bytes());
        if let Some(excerpt) = self.excerpt {
            excerpt.encode(&mut bytes);
        }
        bytes.extend_from_slice(self.label.as_bytes());
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        bytes
    }

    /// Whether these first bytes of a file end inside the header.
    pub(crate) fn is_cut(bytes: &[u8]) -> bool {
        let fixed = bytes.get(..HEADER_FIXED);
        fixed.is_none_or(|fixed| {
            HEADER_FIXED + EXCERPT_BYTES + u32_at(fixed, 28) as usize + CRC_BYTES > bytes.len()
        })
    }

    /// Decodes the header at the start of `bytes`; returns it and its length.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(Header, usize), String> {
        let fixed = bytes
            .get(..HEADER_FIXED)
            .ok_or("the file ends inside the header")?;
        if fixed[..8] != HEADER_MAGIC {
            return Err("the file is not a segment: the magic number is missing".into());
        }
        let version = u16::from_le_bytes([fixed[8], fixed[9]]);
        if version != VERSION {
            return Err(format!(
                "the header has version {version}; this program reads version {VERSION}"
            ));
        }
        let label_len = u32_at(fixed, 28) as usize;
        if label_len > LABEL_MAX {
            return Err(format!(
                "the header's label has {label_len} bytes (limit {LABEL_MAX})"
            ));
        }
        let label_at = match fixed[13] {
            FORM_WHOLE => HEADER_FIXED,
            FORM_EXCERPT => HEADER_FIXED + EXCERPT_BYTES,
            other => return Err(format!("unknown file form {other}")),
        };
        let len = label_at + label_len + CRC_BYTES;
        let whole = bytes.get(..len).ok_or("the file ends inside the header")?;
        let (covered, crc) = whole.split_at(len - CRC_BYTES);
        if crc32c::crc32c(covered) != u32_at(crc, 0) {
            return Err("checksum mismatch in the header".into());
        }
        let encoding = match (fixed[10], u32_at(fixed, 16), u32_at(fixed, 20)) {
            (0, 0, 0) => RecordEncoding::Variable,
            (1, key, value) if u64::from(key) + u64::from(value) > 0 => {
                RecordEncoding::Fixed { key, value }
            }
            (kind, key, value) => {
                return Err(format!("unknown record encoding {kind} ({key}, {value})"));
            }
        };
        let compression = match fixed[11] {
            0 => BlockCompression::None,
            1 => BlockCompression::Lz4,
            other => return Err(format!("unknown codec {other}")),
        };
        if (fixed[12], &fixed[14..16]) != (CHECKSUM_CRC32C, &[0, 0]) {
            return Err(format!("unknown checksum kind {:?}", &fixed[12..16]));
        }
        let label = std::str::from_utf8(&covered[label_at..])
            .map_err(|_| "the label is not valid UTF-8")?;
        let partitions = u32_at(fixed, 24);
        let excerpt = (fixed[13] == FORM_EXCERPT).then(|| Excerpt::decode(&whole[HEADER_FIXED..]));
        if let Some(Excerpt { partition, .. }) = excerpt
            && partition >= partitions
        {
            return Err(format!(
                "it holds partition {partition}; the segment has {partitions}"
            ));
        }
        Ok((
            Header {
                encoding,
                compression,
                partitions,
                excerpt,
                label: label.to_owned(),
            },
            len,
        ))
    }

    /// Returns the number of entries of the partition table.
    pub(crate) fn table_len(&self) -> u32 {
        if self.excerpt.is_some() {
            1
        } else {
            self.partitions
        }
    }

    /// Returns the partition of a row of the table.
    pub(crate) fn partition_of(&self, row: u32) -> u32 {
        self.excerpt.map_or(row, |excerpt| excerpt.partition)
    }

    /// Returns the number of the partition's first block in this file.
    pub(crate) fn first_block(&self) -> u64 {
        self.excerpt.map_or(0, |excerpt| excerpt.first_block)
    }

    /// Returns the number of the partition's first record in this file.
    pub(crate) fn first_ordinal(&self) -> u64 {
        self.excerpt.map_or(0, |excerpt| excerpt.first_ordinal)
    }
}

impl Excerpt {
    pub(crate) fn encode(self, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.partition.to_le_bytes());
        into.extend_from_slice(&self.first_block.to_le_bytes());
        into.extend_from_slice(&self.first_ordinal.to_le_bytes());
    }

    pub(crate) fn decode(bytes: &[u8]) -> Excerpt {
        Excerpt {
            partition: u32_at(bytes, 0),
            first_block: u64_at(bytes, 4),
            first_ordinal: u64_at(bytes, 12),
        }
    }
}

impl PartitionEntry {
    /// Appends the entry of partition `number`.
    pub(crate) fn encode(&self, number: u32, into: &mut Vec<u8>) {
        let start = into.len();
        let fields = [
            self.offset,
            self.stored_len,
            self.raw_len,
            self.records,
            self.first_block,
            self.blocks,
        ];
        for field in fields {
            into.extend_from_slice(&field.to_le_bytes());
        }
        into.extend_from_slice(&self.index_crc.to_le_bytes());
        let crc = entry_crc(number, &into[start..]);
        into.extend_from_slice(&crc.to_le_bytes());
    }

    /// Decodes and verifies the entry of partition `number`.
    pub(crate) fn decode(bytes: &[u8], number: u32) -> Result<PartitionEntry, String> {
        let (covered, crc) =
            bytes[..PARTITION_ENTRY_BYTES].split_at(PARTITION_ENTRY_BYTES - CRC_BYTES);
        if entry_crc(number, covered) != u32_at(crc, 0) {
            return Err(format!(
                "checksum mismatch in the entry of partition {number}"
            ));
        }
        Ok(PartitionEntry {
            offset: u64_at(bytes, 0),
            stored_len: u64_at(bytes, 8),
            raw_len: u64_at(bytes, 16),
            records: u64_at(bytes, 24),
            first_block: u64_at(bytes, 32),
            blocks: u64_at(bytes, 40),
            index_crc: u32_at(bytes, 48),
        })
    }

    /// Returns the size of the partition's part of the block index.
    pub(crate) fn index_len(&self) -> usize {
        (self.blocks as usize).saturating_mul(BLOCK_ENTRY_BYTES)
    }
}

/// Returns the checksum of all entries of a table, without the entries' own checksums: a CRC over bytes and
/// their CRC does not depend on the bytes.
pub(crate) fn table_crc(table: &[u8]) -> u32 {
    let entries = table.chunks_exact(PARTITION_ENTRY_BYTES);
    entries.fold(0, |crc, entry| {
        crc32c::crc32c_append(crc, &entry[..PARTITION_ENTRY_BYTES - CRC_BYTES])
    })
}

/// Returns the digest of the records that a table and a block index describe, in their order. It covers the length
/// and the checksum of each block but no place in the file, which depends on the length of the label.
pub(crate) fn records_digest(table: &[u8], index: &[u8]) -> u64 {
    let mut digest = Xxh3::new();
    for entry in table.chunks_exact(PARTITION_ENTRY_BYTES) {
        digest.update(&entry[ENTRY_LENGTHS]);
    }
    for block in index.chunks_exact(BLOCK_ENTRY_BYTES) {
        digest.update(&block[BLOCK_CONTENTS]);
    }
    digest.digest()
}

/// Returns the checksum of an entry, which covers its number: a misplaced entry does not pass.
fn entry_crc(number: u32, fields: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&number.to_le_bytes()), fields)
}

impl BlockEntry {
    pub(crate) fn encode(&self, into: &mut Vec<u8>) {
        for field in [
            self.offset,
            self.stored_len,
            self.raw_len,
            self.first_ordinal,
        ] {
            into.extend_from_slice(&field.to_le_bytes());
        }
        into.extend_from_slice(&self.key_prefix.to_le_bytes());
        into.extend_from_slice(&self.crc.to_le_bytes());
        into.extend_from_slice(&u32::from(self.codec == Codec::Lz4).to_le_bytes());
    }

    /// Decodes the first entry of an index; `None` if it is missing or has an unknown codec.
    pub(crate) fn decode_first(index: &[u8]) -> Option<BlockEntry> {
        index.get(..BLOCK_ENTRY_BYTES).and_then(BlockEntry::decode)
    }

    /// Decodes one entry; `None` if it has an unknown codec.
    #[inline]
    pub(crate) fn decode(bytes: &[u8]) -> Option<BlockEntry> {
        let codec = match u32_at(bytes, 52) {
            0 => Codec::Stored,
            1 => Codec::Lz4,
            _ => return None,
        };
        Some(BlockEntry {
            offset: u64_at(bytes, 0),
            stored_len: u64_at(bytes, 8),
            raw_len: u64_at(bytes, 16),
            first_ordinal: u64_at(bytes, 24),
            key_prefix: u128::from(u64_at(bytes, 32)) | u128::from(u64_at(bytes, 40)) << 64,
            crc: u32_at(bytes, 48),
            codec,
        })
    }
}

impl Trailer {
    pub(crate) fn encode(&self) -> [u8; TRAILER_BYTES] {
        let mut bytes = [0; TRAILER_BYTES];
        let fields = [
            self.footer_offset,
            self.footer_len,
            self.records,
            self.blocks,
            self.raw_len,
        ];
        for (index, field) in fields.into_iter().enumerate() {
            bytes[index * 8..][..8].copy_from_slice(&field.to_le_bytes());
        }
        bytes[40..TRAILER_COVERED].copy_from_slice(&self.table_crc.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..TRAILER_COVERED]);
        bytes[TRAILER_COVERED..48].copy_from_slice(&crc.to_le_bytes());
        bytes[48..].copy_from_slice(&TRAILER_MAGIC);
        bytes
    }

    /// Returns the trailer's checksum. It covers the whole file, through the checksums of partition entries,
    /// block index and blocks.
    pub(crate) fn crc(&self) -> u32 {
        u32_at(&self.encode(), TRAILER_COVERED)
    }

    /// Decodes the trailer at the end of a file.
    pub(crate) fn decode(file: &[u8]) -> Result<Trailer, String> {
        let start = file
            .len()
            .checked_sub(TRAILER_BYTES)
            .ok_or("the file is shorter than a trailer")?;
        let bytes = &file[start..];
        if bytes[48..] != TRAILER_MAGIC {
            return Err("the trailer is missing: the file was truncated or never sealed".into());
        }
        if crc32c::crc32c(&bytes[..TRAILER_COVERED]) != u32_at(bytes, TRAILER_COVERED) {
            return Err("checksum mismatch in the trailer".into());
        }
        Ok(Trailer {
            footer_offset: u64_at(bytes, 0),
            footer_len: u64_at(bytes, 8),
            records: u64_at(bytes, 16),
            blocks: u64_at(bytes, 24),
            raw_len: u64_at(bytes, 32),
            table_crc: u32_at(bytes, 40),
        })
    }
}

#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut field = [0; 4];
    field.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(field)
}

#[inline]
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut field = [0; 8];
    field.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(field)
}
