//! Keys of up to 16 bytes as two integers.
//!
//! Owns a form in which such keys are compared and hashed without a look at their bytes: together with the
//! length it tells any two keys apart. It does not order them (`key::head` does).
//!
//! Words have unforeseeable lengths, and a branch on the length costs more than everything else that is done
//! to a word here: what a load brings that is not the key's is masked.

use crate::key::head_of_any_length;
use crate::lent::{LOAD_BYTES, load};

/// The longest key that can be packed, in bytes.
pub(crate) const PACKED_MAX: usize = LOAD_BYTES;

/// A pair and not an array: it stays in registers, where an array goes through memory in halves and comes
/// back as a whole, which waits for both to be written.
pub(crate) type Packed = (u64, u64);

/// The bytes of a key of each length.
static MASKS: [Packed; PACKED_MAX + 1] = {
    let mut masks = [(u64::MAX, u64::MAX); PACKED_MAX + 1];
    let mut length = 0;
    while length < PACKED_MAX {
        let mask = (1 << (8 * length)) - 1;
        masks[length] = halves(mask);
        length += 1;
    }
    masks
};

/// Packs a key of at most `PACKED_MAX` bytes: its bytes, followed by zeros.
#[inline(always)]
pub(crate) fn pack(key: &[u8]) -> Packed {
    let Some(bytes) = load(key) else { return pack_apart(key) };
    let (loaded, mask) = (halves(u128::from_le_bytes(bytes)), MASKS[key.len()]);
    (loaded.0 & mask.0, loaded.1 & mask.1)
}

/// Packs a key behind which nothing may be read.
#[inline(never)]
fn pack_apart(key: &[u8]) -> Packed {
    halves(head_of_any_length(key).swap_bytes())
}

/// The key's bytes, followed by zeros.
#[inline]
pub(crate) fn unpack(packed: Packed) -> [u8; PACKED_MAX] {
    (u128::from(packed.1) << 64 | u128::from(packed.0)).to_le_bytes()
}

const fn halves(bytes: u128) -> Packed {
    (bytes as u64, (bytes >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lent::lend;

    #[test]
    fn keys_of_every_length_are_packed_without_loss_wherever_they_lie() {
        let bytes: Vec<u8> = (1..=40).map(|byte| byte * 6).collect();
        for len in 0..=PACKED_MAX {
            let packed = pack(&bytes[..len]);
            let key = unpack(packed);
            assert_eq!(key[..len], bytes[..len], "length {len}");
            assert!(key[len..].iter().all(|&byte| byte == 0), "length {len}");
            lend(&bytes, || assert_eq!(pack(&bytes[..len]), packed, "length {len}"));
        }
    }
}
