//! Numbers in as few bytes as they need.
//!
//! Owns LEB128 varints of 64 bits, and the zigzag of differences. Does not own where they stand.

/// Bytes of the longest varint.
const VARINT_BYTES_MAX: usize = 10;

pub(super) fn write(mut value: u64, bytes: &mut Vec<u8>) {
    while value >= 0x80 {
        bytes.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    bytes.push(value.to_le_bytes()[0]);
}

/// Takes a varint off the front; `None` when it is cut, or is none.
pub(super) fn read(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for place in 0..VARINT_BYTES_MAX {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        // The tenth byte holds the highest bit alone.
        if place == VARINT_BYTES_MAX - 1 && byte > 1 {
            return None;
        }
        value |= bits << (7 * place);
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// What leads from one value to the next, small for values that are near to each other.
pub(super) fn difference(from: u64, to: u64) -> u64 {
    let step = to.wrapping_sub(from).cast_signed();
    ((step << 1) ^ (step >> 63)).cast_unsigned()
}

/// The value that a difference leads to.
pub(super) fn step(from: u64, difference: u64) -> u64 {
    let step = (difference >> 1) ^ (difference & 1).wrapping_neg();
    from.wrapping_add(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EDGES: [u64; 9] = [0, 1, 127, 128, 16_384, u64::MAX >> 1, 1 << 63, u64::MAX - 1, u64::MAX];

    #[test]
    fn every_number_comes_back() {
        for value in EDGES {
            let mut bytes = Vec::new();
            write(value, &mut bytes);
            let mut rest = &bytes[..];
            assert_eq!((read(&mut rest), rest), (Some(value), &[][..]));
            assert_eq!(read(&mut &bytes[..bytes.len() - 1]), None, "it is cut");
            for other in EDGES {
                assert_eq!(step(value, difference(value, other)), other);
            }
        }
    }

    #[test]
    fn what_has_more_than_64_bits_is_none() {
        let mut long = [0xff; 10];
        long[9] = 1;
        assert_eq!(read(&mut &long[..]), Some(u64::MAX));
        long[9] = 2;
        assert_eq!(read(&mut &long[..]), None);
        assert_eq!(read(&mut &[0x80; 11][..]), None);
    }
}
