//! Keys of up to 16 bytes as two integers.
//!
//! Owns a form in which such keys are compared and hashed without a look at their bytes: together with the
//! length it tells any two keys apart. It does not order them (`key::head` does).
//!
//! Words have unforeseeable lengths, and a branch on the length costs more than everything else that is done
//! to a word here: 4 overlapping loads at clamped offsets cover any length from 4 to 16, 3 any shorter one,
//! and which of the two counts is selected, not branched upon.

use std::hint::select_unpredictable;

/// The longest key that can be packed, in bytes.
pub(crate) const PACKED_MAX: usize = 16;

/// Stands in for keys too short for a load.
const FILLER: &[u8] = &[0; 4];

/// Packs a key of at most `PACKED_MAX` bytes.
#[inline(always)]
pub(crate) fn pack(key: &[u8]) -> [u64; 2] {
    let len = key.len();
    if len == 0 {
        return [0, 0];
    }
    let wide = select_unpredictable(len >= 4, key, FILLER);
    let last = wide.len() - 4;
    let low = u64::from(load(wide, 0)) | u64::from(load(wide, last.min(4))) << 32;
    let high = u64::from(load(wide, last.min(8))) | u64::from(load(wide, last)) << 32;
    let narrow = u32::from_le_bytes([key[0], key[len / 2], key[len - 1], 0]);
    [low | u64::from(select_unpredictable(len >= 4, 0, narrow)), high]
}

/// The key's bytes, followed by zeros.
pub(crate) fn unpack(packed: [u64; 2], len: usize) -> [u8; PACKED_MAX] {
    let mut key = [0; PACKED_MAX];
    let (low, high) = (packed[0].to_le_bytes(), packed[1].to_le_bytes());
    if len >= 4 {
        let last = len - 4;
        key[..4].copy_from_slice(&low[..4]);
        key[last.min(4)..][..4].copy_from_slice(&low[4..]);
        key[last.min(8)..][..4].copy_from_slice(&high[..4]);
        key[last..][..4].copy_from_slice(&high[4..]);
    } else if len > 0 {
        key[0] = low[0];
        key[len / 2] = low[1];
        key[len - 1] = low[2];
    }
    key
}

#[inline(always)]
fn load(bytes: &[u8], at: usize) -> u32 {
    let mut loaded = [0; 4];
    loaded.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(loaded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_every_length_are_packed_without_loss() {
        let bytes: Vec<u8> = (1..=16).map(|byte| byte * 15).collect();
        for len in 0..=PACKED_MAX {
            let key = unpack(pack(&bytes[..len]), len);
            assert_eq!(key[..len], bytes[..len], "length {len}");
            assert!(key[len..].iter().all(|&byte| byte == 0), "length {len}");
        }
    }
}
