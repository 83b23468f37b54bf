//! Keys of up to 16 bytes as two integers, with the hash and tag by which the combine table finds them.
//!
//! Word lengths are unpredictable, and a mispredicted branch costs more than all other work per word. So a
//! load reads 16 bytes whatever the length, and a mask clears the bytes behind the key.

use xxhash_rust::xxh3::xxh3_64;

use crate::key::head_of_any_length;
use crate::lent::{LOAD_BYTES, load};

/// The longest key that can be packed, in bytes.
pub(crate) const PACKED_MAX: usize = LOAD_BYTES;
/// The length code of a long key; a packed key has its length plus 1.
const LONG: u32 = PACKED_MAX as u32 + 2;

/// A key of up to 16 bytes, padded with zeros. With its length it identifies the key; it does not order keys
/// (`key::head` does). For a long key it holds the hash and a position.
///
/// Two fields stay in registers, where an array would go through memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PackedKey {
    pub low: u64,
    pub high: u64,
}

/// 24 bits of a key's hash and its length code. Zero marks an empty slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tag(u32);

/// The form of a key in the combine table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Probe {
    /// The packed key, or the long key's hash and the end of its bytes in the batch.
    pub key: PackedKey,
    /// The upper half of the hash, which selects the slot.
    pub home: u32,
    pub tag: Tag,
}

/// For each key length, the bits of its bytes.
static MASKS: [PackedKey; PACKED_MAX + 1] = {
    let mut masks = [PackedKey {
        low: u64::MAX,
        high: u64::MAX,
    }; PACKED_MAX + 1];
    let mut length = 0;
    while length < PACKED_MAX {
        let mask = (1 << (8 * length)) - 1;
        masks[length] = PackedKey::from_bits(mask);
        length += 1;
    }
    masks
};

impl PackedKey {
    /// Packs a key of at most `PACKED_MAX` bytes.
    #[inline(always)]
    pub(crate) fn new(key: &[u8]) -> PackedKey {
        let Some(bytes) = load(key) else {
            return PackedKey::from_any(key);
        };
        let loaded = PackedKey::from_bits(u128::from_le_bytes(bytes));
        let mask = MASKS[key.len()];
        PackedKey {
            low: loaded.low & mask.low,
            high: loaded.high & mask.high,
        }
    }

    /// Packs a key without reading beyond its end.
    #[inline(never)]
    fn from_any(key: &[u8]) -> PackedKey {
        PackedKey::from_bits(head_of_any_length(key).swap_bytes())
    }

    const fn from_bits(bytes: u128) -> PackedKey {
        PackedKey {
            low: bytes as u64,
            high: (bytes >> 64) as u64,
        }
    }

    /// Returns the key's bytes, padded with zeros.
    #[inline]
    pub(crate) fn bytes(self) -> [u8; PACKED_MAX] {
        (u128::from(self.high) << 64 | u128::from(self.low)).to_le_bytes()
    }

    /// Folded multiplication: one instruction mixes all bytes well enough for probing.
    #[inline(always)]
    fn hash(self, code: u32) -> u64 {
        let left = self.low ^ 0x9e37_79b9_7f4a_7c15;
        let right = self.high ^ 0xd1b5_4a32_d192_ed03 ^ u64::from(code);
        let product = u128::from(left) * u128::from(right);
        (product >> 64) as u64 ^ product as u64
    }
}

impl Tag {
    pub(crate) const EMPTY: Tag = Tag(0);

    #[inline(always)]
    fn new(hash: u64, code: u32) -> Tag {
        Tag((hash as u32) << 8 | code)
    }

    #[inline(always)]
    fn code(self) -> u32 {
        self.0 & 0xff
    }

    /// Zero if the tags are equal.
    #[inline(always)]
    pub(crate) fn difference(self, other: Tag) -> u64 {
        u64::from(self.0 ^ other.0)
    }

    /// Returns the length of a packed key; `None` for a long key.
    #[inline(always)]
    pub(crate) fn packed_len(self) -> Option<usize> {
        match self.code() {
            LONG => None,
            code => Some(code as usize - 1),
        }
    }
}

impl Probe {
    /// Packs and hashes a key of at most `PACKED_MAX` bytes.
    #[inline(always)]
    pub(crate) fn packed(key: &[u8]) -> Probe {
        let code = key.len() as u32 + 1;
        let key = PackedKey::new(key);
        let hash = key.hash(code);
        Probe {
            key,
            home: home(hash),
            tag: Tag::new(hash, code),
        }
    }

    /// Hashes a long key whose bytes end at `end` of the batch.
    pub(crate) fn long(key: &[u8], end: usize) -> Probe {
        let hash = xxh3_64(key);
        let key = PackedKey {
            low: hash,
            high: end as u64,
        };
        Probe {
            key,
            home: home(hash),
            tag: Tag::new(hash, LONG),
        }
    }
}

/// Returns the home of a key from the contents of its slot.
pub(crate) fn home_of_slot(key: PackedKey, tag: Tag) -> u32 {
    match tag.code() {
        LONG => home(key.low),
        code => home(key.hash(code)),
    }
}

#[inline(always)]
fn home(hash: u64) -> u32 {
    (hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lent::lend;

    #[test]
    fn pack_round_trips_keys_of_every_length() {
        let bytes: Vec<u8> = (1..=40).map(|byte| byte * 6).collect();
        for len in 0..=PACKED_MAX {
            let packed = PackedKey::new(&bytes[..len]);
            let key = packed.bytes();
            assert_eq!(key[..len], bytes[..len], "length {len}");
            assert!(key[len..].iter().all(|&byte| byte == 0), "length {len}");
            lend(&bytes, || {
                assert_eq!(PackedKey::new(&bytes[..len]), packed, "length {len}")
            });
        }
    }
}
