//! The bytes of a segment file: header, partition table, block index and trailer.
//!
//! Owns sizes, magic numbers and the coding of each part, with a checksum over every part. Does not own the
//! rules that tie the parts to each other and to the file's length (`segment::check`).
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
//! A reduce reads one partition and nothing of the others: header, trailer, its entry, its part of the block
//! index, its blocks. So each entry has a checksum of its own, which covers its number, too, and holds that
//! of its part of the index; what that costs does not grow with the number of partitions.
//!
//! The form is 0 for a file with all partitions of a map's output. It is 1 for a file with one of them, or
//! with the end of one, such as a fetch writes: its table has one entry, and the fields in brackets say what
//! it is an entry of.

use crate::record::RecordEncoding;

/// Raw bytes of a full block. A record that is longer gets a jumbo block of its own.
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

/// The longest label that a header holds, in bytes.
const LABEL_MAX: usize = 4096;
/// The longest header, in bytes.
pub(crate) const HEADER_BYTES_MAX: usize = HEADER_FIXED + EXCERPT_BYTES + LABEL_MAX + CRC_BYTES;
pub(crate) const PARTITION_ENTRY_BYTES: usize = 56;
pub(crate) const BLOCK_ENTRY_BYTES: usize = 56;
pub(crate) const TRAILER_BYTES: usize = 56;
/// The bytes of a trailer that its checksum covers.
const TRAILER_COVERED: usize = 44;

/// Whether blocks are compressed. A block that does not shrink below 0.9 is stored as it is either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BlockCompression {
    /// Blocks are stored as they are, and read without a copy.
    #[default]
    None,
    /// Each block is compressed with lz4; jumbo blocks are not, so that reading them needs no memory.
    Lz4,
}

/// What the header says about the whole file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub encoding: RecordEncoding,
    pub compression: BlockCompression,
    pub partitions: u32,
    /// Set when the file has blocks of one partition only.
    pub excerpt: Option<Excerpt>,
    pub label: String,
}

/// What a file with blocks of one partition only holds of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Excerpt {
    pub partition: u32,
    /// Number in its partition of the first block that is here.
    pub first_block: u64,
    /// Ordinal in its partition of the first record that is here; those before it were left out.
    pub first_ordinal: u64,
}

/// Where one partition lies in a segment, and how much it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PartitionEntry {
    /// Offset of its first block in the file.
    pub offset: u64,
    /// Bytes that its blocks take in the file.
    pub stored_len: u64,
    /// Bytes of its blocks before compression.
    pub raw_len: u64,
    pub records: u64,
    /// Index of its first block in the file's block index.
    pub first_block: u64,
    /// How many blocks it has.
    pub blocks: u64,
    /// Checksum of its part of the block index.
    pub index_crc: u32,
}

/// How one block's bytes are stored.
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
    /// Ordinal of the block's first record within its partition.
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
    /// Bytes of all records as encoded, before compression.
    pub raw_len: u64,
    /// Checksum of the partition entries, which hold that of the block index.
    pub table_crc: u32,
}

/// Refuses a label that a header cannot hold.
pub(crate) fn check_label(label: &str) -> Result<(), String> {
    match label.len() {
        len if len > LABEL_MAX => Err(format!("a label of {len} bytes; at most {LABEL_MAX} are allowed")),
        _ => Ok(()),
    }
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
        let mut bytes = Vec::with_capacity(HEADER_FIXED + EXCERPT_BYTES + self.label.len() + CRC_BYTES);
        bytes.extend_from_slice(&HEADER_MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        let form = if self.excerpt.is_some() { FORM_EXCERPT } else { FORM_WHOLE };
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

    /// Whether these first bytes of a file end inside its header.
    pub(crate) fn is_cut(bytes: &[u8]) -> bool {
        let fixed = bytes.get(..HEADER_FIXED);
        fixed.is_none_or(|fixed| {
            HEADER_FIXED + EXCERPT_BYTES + u32_at(fixed, 28) as usize + CRC_BYTES > bytes.len()
        })
    }

    /// Reads the header at the start of `bytes` and its length, or says what does not fit.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(Header, usize), String> {
        let fixed = bytes.get(..HEADER_FIXED).ok_or("the file ends inside the header")?;
        if fixed[..8] != HEADER_MAGIC {
            return Err("the file does not start with the magic of a segment".into());
        }
        let version = u16::from_le_bytes([fixed[8], fixed[9]]);
        if version != VERSION {
            return Err(format!("the header says version {version}, this program reads version {VERSION}"));
        }
        let label_len = u32_at(fixed, 28) as usize;
        if label_len > LABEL_MAX {
            return Err(format!("the header's label of {label_len} bytes is longer than {LABEL_MAX}"));
        }
        let label_at = match fixed[13] {
            FORM_WHOLE => HEADER_FIXED,
            FORM_EXCERPT => HEADER_FIXED + EXCERPT_BYTES,
            other => return Err(format!("unknown form of file {other}")),
        };
        let len = label_at + label_len + CRC_BYTES;
        let whole = bytes.get(..len).ok_or("the file ends inside the header")?;
        let (covered, crc) = whole.split_at(len - CRC_BYTES);
        if crc32c::crc32c(covered) != u32_at(crc, 0) {
            return Err("the header's checksum does not fit".into());
        }
        let encoding = match (fixed[10], u32_at(fixed, 16), u32_at(fixed, 20)) {
            (0, 0, 0) => RecordEncoding::Variable,
            (1, key, value) if u64::from(key) + u64::from(value) > 0 => RecordEncoding::Fixed { key, value },
            (kind, key, value) => return Err(format!("unknown record encoding {kind} ({key}, {value})")),
        };
        let compression = match fixed[11] {
            0 => BlockCompression::None,
            1 => BlockCompression::Lz4,
            other => return Err(format!("unknown codec {other}")),
        };
        if (fixed[12], &fixed[14..16]) != (CHECKSUM_CRC32C, &[0, 0]) {
            return Err(format!("unknown kind of checksum {:?}", &fixed[12..16]));
        }
        let label = std::str::from_utf8(&covered[label_at..]).map_err(|_| "the label is not UTF-8")?;
        let partitions = u32_at(fixed, 24);
        let excerpt = (fixed[13] == FORM_EXCERPT).then(|| Excerpt::decode(&whole[HEADER_FIXED..]));
        if let Some(Excerpt { partition, .. }) = excerpt
            && partition >= partitions
        {
            return Err(format!("it holds partition {partition} of {partitions}"));
        }
        Ok((Header { encoding, compression, partitions, excerpt, label: label.to_owned() }, len))
    }

    /// How many entries the partition table has.
    pub(crate) fn table_len(&self) -> u32 {
        if self.excerpt.is_some() { 1 } else { self.partitions }
    }

    /// The partition of an entry of the table.
    pub(crate) fn partition_of(&self, row: u32) -> u32 {
        self.excerpt.map_or(row, |excerpt| excerpt.partition)
    }

    /// Number in its partition of the first block that each partition of the file starts with.
    pub(crate) fn first_block(&self) -> u64 {
        self.excerpt.map_or(0, |excerpt| excerpt.first_block)
    }

    /// Ordinal of the first record that each partition of the file starts with.
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
        let fields =
            [self.offset, self.stored_len, self.raw_len, self.records, self.first_block, self.blocks];
        for field in fields {
            into.extend_from_slice(&field.to_le_bytes());
        }
        into.extend_from_slice(&self.index_crc.to_le_bytes());
        let crc = entry_crc(number, &into[start..]);
        into.extend_from_slice(&crc.to_le_bytes());
    }

    /// Reads the entry of partition `number`, or says what does not fit.
    pub(crate) fn decode(bytes: &[u8], number: u32) -> Result<PartitionEntry, String> {
        let (covered, crc) = bytes[..PARTITION_ENTRY_BYTES].split_at(PARTITION_ENTRY_BYTES - CRC_BYTES);
        if entry_crc(number, covered) != u32_at(crc, 0) {
            return Err(format!("the footer's checksum of the entry of partition {number} does not fit"));
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

    /// Bytes of its part of the block index.
    pub(crate) fn index_len(&self) -> usize {
        (self.blocks as usize).saturating_mul(BLOCK_ENTRY_BYTES)
    }
}

/// The checksum of all entries of a table. Their own checksums are left out: a CRC over bytes and their CRC
/// does not depend on the bytes.
pub(crate) fn table_crc(table: &[u8]) -> u32 {
    let entries = table.chunks_exact(PARTITION_ENTRY_BYTES);
    entries.fold(0, |crc, entry| crc32c::crc32c_append(crc, &entry[..PARTITION_ENTRY_BYTES - CRC_BYTES]))
}

/// An entry in another's place has another checksum.
fn entry_crc(number: u32, fields: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&number.to_le_bytes()), fields)
}

impl BlockEntry {
    pub(crate) fn encode(&self, into: &mut Vec<u8>) {
        for field in [self.offset, self.stored_len, self.raw_len, self.first_ordinal] {
            into.extend_from_slice(&field.to_le_bytes());
        }
        into.extend_from_slice(&self.key_prefix.to_le_bytes());
        into.extend_from_slice(&self.crc.to_le_bytes());
        into.extend_from_slice(&u32::from(self.codec == Codec::Lz4).to_le_bytes());
    }

    /// Reads the first entry of an index; `None` when there is none, or it names a codec that does not exist.
    pub(crate) fn decode_first(index: &[u8]) -> Option<BlockEntry> {
        index.get(..BLOCK_ENTRY_BYTES).and_then(BlockEntry::decode)
    }

    /// Reads one entry; `None` when it names a codec that does not exist.
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
        let fields = [self.footer_offset, self.footer_len, self.records, self.blocks, self.raw_len];
        for (index, field) in fields.into_iter().enumerate() {
            bytes[index * 8..][..8].copy_from_slice(&field.to_le_bytes());
        }
        bytes[40..TRAILER_COVERED].copy_from_slice(&self.table_crc.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..TRAILER_COVERED]);
        bytes[TRAILER_COVERED..48].copy_from_slice(&crc.to_le_bytes());
        bytes[48..].copy_from_slice(&TRAILER_MAGIC);
        bytes
    }

    /// The trailer's own checksum, which stands for the whole file: it covers that of the partition entries,
    /// which cover the block index, which covers the blocks.
    pub(crate) fn crc(&self) -> u32 {
        u32_at(&self.encode(), TRAILER_COVERED)
    }

    /// Reads the trailer in the last bytes of a file, or says what does not fit.
    pub(crate) fn decode(file: &[u8]) -> Result<Trailer, String> {
        let start = file.len().checked_sub(TRAILER_BYTES).ok_or("the file is shorter than a trailer")?;
        let bytes = &file[start..];
        if bytes[48..] != TRAILER_MAGIC {
            return Err("the file does not end with a trailer: it was cut, or never sealed".into());
        }
        if crc32c::crc32c(&bytes[..TRAILER_COVERED]) != u32_at(bytes, TRAILER_COVERED) {
            return Err("the trailer's checksum does not fit".into());
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
