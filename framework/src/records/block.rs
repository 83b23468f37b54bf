//! The layout of the head and of blocks of typed records, with checksums and limits.

use std::fmt;

use crate::codec::{Key, Value};
use crate::input::TYPED_RECORDS;

/// The fixed part of the head of a file: magic, version, checksum of the names, and their lengths.
pub(super) const HEAD_BYTES: usize = 24;
/// The longest name of a family.
const FAMILY_BYTES_MAX: usize = 1 << 20;
/// Header of a block: length, checksum, records.
pub(super) const BLOCK_HEADER_BYTES: usize = 12;
/// A block is closed when its body reaches this size; a larger record gets a block of its own.
const BODY_BYTES: usize = 128 << 10;
const VERSION: u32 = 2;

/// The names of the families of the records of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Families {
    key: String,
    value: String,
}

impl fmt::Display for Families {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "({}, {})", self.key, self.value)
    }
}

impl Families {
    pub(super) fn of<K: Key, V: Value>() -> Families {
        Families {
            key: K::family(),
            value: V::family(),
        }
    }

    /// Appends the head of a file.
    pub(super) fn write_head(&self, out: &mut Vec<u8>) {
        let names = [self.key.as_bytes(), self.value.as_bytes()].concat();
        out.extend_from_slice(&TYPED_RECORDS);
        for field in [
            VERSION,
            crc32c::crc32c(&names),
            self.key.len() as u32,
            self.value.len() as u32,
        ] {
            out.extend_from_slice(&field.to_le_bytes());
        }
        out.extend_from_slice(&names);
    }
}

/// The checked fixed part of the head of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    crc: u32,
    key_bytes: usize,
    value_bytes: usize,
}

impl Head {
    pub(super) fn decode(bytes: &[u8; HEAD_BYTES]) -> Result<Head, String> {
        if bytes[..8] != TYPED_RECORDS {
            return Err("not a file of typed records".into());
        }
        let version = u32_at(bytes, 8);
        if version != VERSION {
            return Err(format!(
                "it has version {version} of typed records, but this program reads version {VERSION}; write it again"
            ));
        }
        let key_bytes = u32_at(bytes, 16) as usize;
        let value_bytes = u32_at(bytes, 20) as usize;
        if key_bytes.max(value_bytes) > FAMILY_BYTES_MAX {
            return Err("the names of its types are damaged".into());
        }
        Ok(Head {
            crc: u32_at(bytes, 12),
            key_bytes,
            value_bytes,
        })
    }

    /// Returns the length of both names.
    pub(super) fn names_bytes(self) -> usize {
        self.key_bytes + self.value_bytes
    }

    pub(super) fn families(self, names: &[u8]) -> Result<Families, String> {
        let (key, value) = names.split_at(self.key_bytes);
        if crc32c::crc32c(names) != self.crc {
            return Err("the names of its types do not match their checksum".into());
        }
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        Ok(Families {
            key: text(key),
            value: text(value),
        })
    }
}

/// The block being filled.
#[derive(Debug, Default)]
pub(super) struct BlockWriter {
    body: Vec<u8>,
    records: u32,
    field: Vec<u8>,
}

impl BlockWriter {
    /// Adds a record whose value is what `encode` appends; moves the block to `out` when it is full.
    #[inline]
    pub(super) fn add<K: Key>(
        &mut self,
        key: K::Ref<'_>,
        encode: impl FnOnce(&mut Vec<u8>),
        out: &mut Vec<u8>,
    ) {
        let BlockWriter { body, field, .. } = self;
        add_field(K::bytes(key, field), body);
        field.clear();
        encode(field);
        add_field(field, body);
        self.end_record(out);
    }

    /// As [`add`](BlockWriter::add), for a pair in owned form.
    pub(super) fn add_owned<K: Key, V: Value>(
        &mut self,
        key: &K::Owned,
        value: &V::Owned,
        out: &mut Vec<u8>,
    ) {
        let BlockWriter { body, field, .. } = self;
        field.clear();
        K::encode_owned(key, true, field);
        add_field(field, body);
        field.clear();
        V::encode_owned(value, true, field);
        add_field(field, body);
        self.end_record(out);
    }

    #[inline]
    fn end_record(&mut self, out: &mut Vec<u8>) {
        self.records += 1;
        if self.body.len() >= BODY_BYTES {
            self.finish(out);
        }
    }

    /// Appends the unfinished block to a state: its number of records and its bytes.
    pub(super) fn save(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.records.to_le_bytes());
        state.extend_from_slice(&self.body);
    }

    /// Restores a saved block.
    pub(super) fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let (records, body) = state
            .split_first_chunk::<4>()
            .ok_or("a block was saved without its length")?;
        self.records = u32::from_le_bytes(*records);
        self.body = body.to_vec();
        Ok(())
    }

    /// Moves the remaining records to `out`.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        if self.records == 0 {
            return;
        }
        let length = u32::try_from(self.body.len()).expect("a record of less than 4 GiB");
        let mut header = BlockHeader {
            length,
            crc: 0,
            records: self.records,
        };
        header.crc = header.checksum(&self.body);
        for field in [header.length, header.crc, header.records] {
            out.extend_from_slice(&field.to_le_bytes());
        }
        out.extend_from_slice(&self.body);
        self.body.clear();
        self.records = 0;
    }
}

/// The header of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockHeader {
    pub length: u32,
    pub crc: u32,
    pub records: u32,
}

impl BlockHeader {
    pub(super) fn decode(bytes: &[u8; BLOCK_HEADER_BYTES]) -> BlockHeader {
        BlockHeader {
            length: u32_at(bytes, 0),
            crc: u32_at(bytes, 4),
            records: u32_at(bytes, 8),
        }
    }

    /// Returns the expected checksum of header and body.
    pub(super) fn checksum(self, body: &[u8]) -> u32 {
        crc32c::crc32c_append(self.checksum_start(), body)
    }

    /// Returns the checksum of the header.
    pub(super) fn checksum_start(self) -> u32 {
        let mut counted = [0; 8];
        counted[..4].copy_from_slice(&self.length.to_le_bytes());
        counted[4..].copy_from_slice(&self.records.to_le_bytes());
        crc32c::crc32c(&counted)
    }
}

/// Takes one field from the front of a block's body; `None` if its length exceeds the rest.
#[inline]
pub(super) fn take_field<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let mut length = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        length |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            let (field, after) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            *rest = after;
            return Some(field);
        }
    }
    None
}

#[inline]
fn add_field(field: &[u8], body: &mut Vec<u8>) {
    let mut length = field.len();
    while length >= 0x80 {
        body.push(length as u8 | 0x80);
        length >>= 7;
    }
    body.push(length as u8);
    body.extend_from_slice(field);
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut four = [0; 4];
    four.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(four)
}
