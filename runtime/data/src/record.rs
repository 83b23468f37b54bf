//! How one record is laid out in bytes, the same in the sort arena, in a run and in a sealed segment.
//!
//! Owns the two encodings and the variable-length integers of the second one. Does not own blocks (see
//! `segment`) nor the order-preserving encoding of typed keys, which is the framework's: here a key is bytes,
//! compared as bytes.

/// How the records of one job are laid out. One choice per job; a segment's header repeats it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordEncoding {
    /// Every key is `key` bytes and every value `value` bytes; a record has no header. The sum must not be 0.
    Fixed {
        /// Length of every key, in bytes.
        key: u32,
        /// Length of every value, in bytes.
        value: u32,
    },
    /// Lengths of any size, written as LEB128 before the key and the value.
    Variable,
}

/// Where the key and the value of one encoded record lie, relative to the record's first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Offset of the first key byte.
    pub key: usize,
    /// Offset of the first value byte, which is also the end of the key.
    pub value: usize,
    /// Length of the whole record.
    pub end: usize,
}

/// Records in order, one after the other.
pub(crate) trait Source {
    type Error;

    fn advance(&mut self) -> Result<bool, Self::Error>;
    fn key(&self) -> &[u8];
    fn value(&self) -> &[u8];
    /// The record as it is stored.
    fn record(&self) -> &[u8];
}

/// The longest LEB128 form of a length.
const VARINT_MAX: usize = 10;

/// The most bytes that `Variable` adds to a record's key and value.
pub(crate) const HEADER_MAX: usize = 2 * VARINT_MAX;

impl RecordEncoding {
    /// Bytes that a record with these lengths takes.
    #[inline]
    pub(crate) fn encoded_len(self, key: usize, value: usize) -> usize {
        match self {
            RecordEncoding::Fixed { .. } => key + value,
            RecordEncoding::Variable => varint_len(key as u64) + varint_len(value as u64) + key + value,
        }
    }

    /// The distance between records, where it is constant.
    #[inline]
    pub(crate) fn stride(self) -> Option<usize> {
        match self {
            RecordEncoding::Fixed { key, value } => Some(key as usize + value as usize),
            RecordEncoding::Variable => None,
        }
    }

    /// The parts of every record, where they are constant; no parts otherwise.
    pub(crate) fn extent(self) -> Extent {
        match self {
            RecordEncoding::Fixed { key, value } => {
                Extent { key: 0, value: key as usize, end: key as usize + value as usize }
            }
            RecordEncoding::Variable => Extent { key: 0, value: 0, end: 0 },
        }
    }

    /// Finds the first record of `bytes`; `None` when it does not lie wholly inside them.
    #[inline(always)]
    pub(crate) fn parse(self, bytes: &[u8]) -> Option<Extent> {
        match self {
            RecordEncoding::Fixed { .. } => Some(self.extent()).filter(|extent| extent.end <= bytes.len()),
            RecordEncoding::Variable => {
                // Two lengths below 128 are by far the most frequent case: one look at two bytes.
                if let [first, second, ..] = *bytes
                    && first < 0x80
                    && second < 0x80
                {
                    let value = 2 + usize::from(first);
                    let end = value + usize::from(second);
                    return (end <= bytes.len()).then_some(Extent { key: 2, value, end });
                }
                parse_long(bytes)
            }
        }
    }

    /// Writes the header of a record, which is empty for `Fixed`, and returns its length.
    #[inline]
    pub(crate) fn header(self, key: usize, value: usize, into: &mut [u8; HEADER_MAX]) -> usize {
        match self {
            RecordEncoding::Fixed { .. } => 0,
            RecordEncoding::Variable => {
                let first = write_varint(key as u64, into);
                first + write_varint(value as u64, &mut into[first..])
            }
        }
    }
}

#[cold]
#[inline(never)]
fn parse_long(bytes: &[u8]) -> Option<Extent> {
    let (key_len, first) = read_varint(bytes)?;
    let (value_len, second) = read_varint(&bytes[first..])?;
    let key = first + second;
    let value = key.checked_add(usize::try_from(key_len).ok()?)?;
    let end = value.checked_add(usize::try_from(value_len).ok()?)?;
    (end <= bytes.len()).then_some(Extent { key, value, end })
}

#[inline]
fn varint_len(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// Writes `value` at the start of `into`, which must be long enough, and returns the length.
#[inline]
fn write_varint(mut value: u64, into: &mut [u8]) -> usize {
    let mut at = 0;
    while value >= 0x80 {
        into[at] = value as u8 | 0x80;
        value >>= 7;
        at += 1;
    }
    into[at] = value as u8;
    at + 1
}

/// Reads one length and how many bytes it took; `None` when it is cut off or does not fit 64 bits.
fn read_varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (index, &byte) in bytes.iter().take(VARINT_MAX).enumerate() {
        let bits = u64::from(byte & 0x7f);
        let shift = 7 * index as u32;
        if shift == 63 && bits > 1 {
            return None;
        }
        value |= bits << shift;
        if byte < 0x80 {
            return Some((value, index + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_back_at_every_boundary_of_its_lengths() {
        let edges = [0usize, 1, 127, 128, 16_383, 16_384, 65_536, 1 << 21];
        for &key in &edges {
            for &value in &edges {
                let mut header = [0; HEADER_MAX];
                let len = RecordEncoding::Variable.header(key, value, &mut header);
                let mut bytes = header[..len].to_vec();
                bytes.resize(len + key + value, 0);
                let extent = RecordEncoding::Variable.parse(&bytes).unwrap();
                assert_eq!(extent, Extent { key: len, value: len + key, end: bytes.len() });
                assert_eq!(RecordEncoding::Variable.encoded_len(key, value), bytes.len());
                bytes.pop();
                assert_eq!(
                    RecordEncoding::Variable.parse(&bytes),
                    None,
                    "cut record of {key} + {value} bytes"
                );
            }
        }
    }

    #[test]
    fn lengths_beyond_any_memory_are_refused() {
        assert_eq!(read_varint(&[0xff; 10]), None);
        assert_eq!(read_varint(&[0x80; 3]), None);
        let mut huge = vec![0xff; 9];
        huge.push(1);
        huge.push(0);
        assert_eq!(RecordEncoding::Variable.parse(&huge), None);
    }
}
