//! The byte layout of one record, identical in the sort arena, in runs and in segments.

/// The record layout of a job; segment headers store it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordEncoding {
    /// Every key has `key` bytes and every value `value` bytes, without a header. The sum must not be 0.
    Fixed {
        /// Length of every key, in bytes.
        key: u32,
        /// Length of every value, in bytes.
        value: u32,
    },
    /// A LEB128 length of the key and one of the value precede them.
    Variable,
}

/// Offsets of a record's key and value, relative to its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub key: usize,
    /// Also the end of the key.
    pub value: usize,
    pub end: usize,
}

/// A sorted stream of records.
pub(crate) trait Source {
    type Error;

    fn advance(&mut self) -> Result<bool, Self::Error>;
    fn key(&self) -> &[u8];
    fn value(&self) -> &[u8];
    /// The encoded record.
    fn record(&self) -> &[u8];
}

/// The longest LEB128 length.
const VARINT_MAX: usize = 10;

/// The longest `Variable` header.
pub(crate) const HEADER_MAX: usize = 2 * VARINT_MAX;

impl RecordEncoding {
    /// Returns the length of an encoded record.
    #[inline]
    pub(crate) fn encoded_len(self, key: usize, value: usize) -> usize {
        match self {
            RecordEncoding::Fixed { .. } => key + value,
            RecordEncoding::Variable => {
                varint_len(key as u64) + varint_len(value as u64) + key + value
            }
        }
    }

    /// Returns the distance between two records if it is constant.
    #[inline]
    pub(crate) fn stride(self) -> Option<usize> {
        match self {
            RecordEncoding::Fixed { key, value } => Some(key as usize + value as usize),
            RecordEncoding::Variable => None,
        }
    }

    /// Returns the offsets of every record if they are constant, zeros otherwise.
    pub(crate) fn extent(self) -> Extent {
        match self {
            RecordEncoding::Fixed { key, value } => Extent {
                key: 0,
                value: key as usize,
                end: key as usize + value as usize,
            },
            RecordEncoding::Variable => Extent {
                key: 0,
                value: 0,
                end: 0,
            },
        }
    }

    /// Finds the first record of `bytes`; `None` if it is not complete.
    #[inline(always)]
    pub(crate) fn parse(self, bytes: &[u8]) -> Option<Extent> {
        match self {
            RecordEncoding::Fixed { .. } => {
                Some(self.extent()).filter(|extent| extent.end <= bytes.len())
            }
            RecordEncoding::Variable => {
                // Most records have two lengths below 128: check both bytes at once.
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

    /// Writes a record's header, which is empty for `Fixed`, and returns its length.
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

/// Writes `value` to the start of `into`, which must be large enough, and returns the length.
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

/// Reads one length; returns it and its encoded size, or `None` if it is truncated or exceeds 64 bits.
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
    fn variable_header_round_trips_at_length_boundaries() {
        let edges = [0usize, 1, 127, 128, 16_383, 16_384, 65_536, 1 << 21];
        for &key in &edges {
            for &value in &edges {
                let mut header = [0; HEADER_MAX];
                let len = RecordEncoding::Variable.header(key, value, &mut header);
                let mut bytes = header[..len].to_vec();
                bytes.resize(len + key + value, 0);
                let extent = RecordEncoding::Variable.parse(&bytes).unwrap();
                assert_eq!(
                    extent,
                    Extent {
                        key: len,
                        value: len + key,
                        end: bytes.len()
                    }
                );
                assert_eq!(
                    RecordEncoding::Variable.encoded_len(key, value),
                    bytes.len()
                );
                bytes.pop();
                assert_eq!(
                    RecordEncoding::Variable.parse(&bytes),
                    None,
                    "truncated record of {key} + {value} bytes"
                );
            }
        }
    }

    #[test]
    fn parse_rejects_overflowing_lengths() {
        assert_eq!(read_varint(&[0xff; 10]), None);
        assert_eq!(read_varint(&[0x80; 3]), None);
        let mut huge = vec![0xff; 9];
        huge.push(1);
        huge.push(0);
        assert_eq!(RecordEncoding::Variable.parse(&huge), None);
    }
}
