//! The header of a SequenceFile, and Hadoop's variable-length integers.

use super::codec::Codec;
use crate::sync::MARKER_BYTES;

/// Magic and version; version 6 is in use since 2006.
pub(super) const MAGIC: &[u8; 4] = b"SEQ\x06";

/// The layout of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    Plain,
    /// Each value is compressed.
    Records(Codec),
    /// Blocks of keys and values are compressed.
    Blocks(Codec),
}

#[derive(Debug)]
pub(super) struct Header {
    pub(super) key: String,
    pub(super) value: String,
    pub(super) layout: Layout,
    pub(super) marker: [u8; MARKER_BYTES],
    /// Length in bytes, with the marker.
    pub(super) length: usize,
}

impl Header {
    /// Parses a header after the magic; `None` if the bytes end early.
    pub(super) fn parse(bytes: &[u8]) -> Option<Result<Header, String>> {
        let mut rest = bytes.get(MAGIC.len()..)?;
        let key = take_text(&mut rest)?;
        let value = take_text(&mut rest)?;
        let (flags, after) = rest.split_first_chunk::<2>()?;
        rest = after;
        let codec = match flags {
            [0, 0] => None,
            _ => Some(take_text(&mut rest)?),
        };
        let (pairs, after) = rest.split_first_chunk()?;
        rest = after;
        for _ in 0..u32::from_be_bytes(*pairs).saturating_mul(2) {
            take_text(&mut rest)?;
        }
        let (marker, after) = rest.split_first_chunk()?;
        let layout = match (codec.as_deref().map(Codec::of), flags[1]) {
            (None, _) => Layout::Plain,
            (Some(Err(reason)), _) => return Some(Err(reason)),
            (Some(Ok(codec)), 0) => Layout::Records(codec),
            (Some(Ok(codec)), _) => Layout::Blocks(codec),
        };
        let length = bytes.len() - after.len();
        Some(Ok(Header {
            key,
            value,
            layout,
            marker: *marker,
            length,
        }))
    }
}

fn take_text(bytes: &mut &[u8]) -> Option<String> {
    let length = usize::try_from(take_number(bytes)?).ok()?;
    let (text, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(String::from_utf8_lossy(text).into_owned())
}

/// Takes an integer in the encoding of Hadoop's `WritableUtils.writeVLong`: one byte, or a byte with sign and
/// length, followed by big-endian digits.
pub fn take_number(bytes: &mut &[u8]) -> Option<i64> {
    let (first, rest) = bytes.split_first()?;
    let first = *first as i8;
    if first >= -112 {
        *bytes = rest;
        return Some(i64::from(first));
    }
    let (count, is_negative) = if first < -120 {
        (-120 - i32::from(first), true)
    } else {
        (-112 - i32::from(first), false)
    };
    let (digits, rest) = rest.split_at_checked(usize::try_from(count).ok()?)?;
    *bytes = rest;
    let number = digits
        .iter()
        .fold(0_i64, |number, byte| number << 8 | i64::from(*byte));
    Some(if is_negative { !number } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variable_length_integers_match_hadoop() {
        for (bytes, number) in [
            (&[0][..], 0),
            (&[127], 127),
            (&[0x90], -112),
            (&[0x8f, 0x80], 128),
            (&[0x8e, 0x01, 0x00], 256),
            (&[0x87, 0x70], -113),
            (&[0x86, 0x01, 0x00], -257),
        ] {
            let mut rest = bytes;
            assert_eq!(take_number(&mut rest), Some(number), "{bytes:?}");
            assert!(rest.is_empty());
        }
        assert_eq!(take_number(&mut &[0x8e, 0x01][..]), None);
        assert_eq!(take_number(&mut &b""[..]), None);
    }
}
