//! The first bytes of a key as an integer that compares like the key; partitioning, sorting, merging and the
//! block index all use it.

use std::hint::select_unpredictable;

/// Returns the first 16 bytes of a key, padded with zeros, as a big-endian integer. If a key is less than
/// another, its head is not greater. Overlapping loads are three to four times faster for short keys than a
/// copy of variable length.
#[inline(always)]
pub(crate) fn head(key: &[u8]) -> u128 {
    if let Some(first) = key.first_chunk::<16>() {
        return u128::from_be_bytes(*first);
    }
    let len = key.len() as u32;
    if let (Some(first), Some(last)) = (key.first_chunk::<8>(), key.last_chunk::<8>()) {
        // Shift out the bytes that the first load covers.
        let rest = (u64::from_be_bytes(*last) << 1) << (127 - 8 * len);
        return u128::from(u64::from_be_bytes(*first)) << 64 | u128::from(rest);
    }
    if let (Some(first), Some(last)) = (key.first_chunk::<4>(), key.last_chunk::<4>()) {
        let rest = (u64::from(u32::from_be_bytes(*last)) << (64 - 8 * len)) as u32;
        return (u128::from(u32::from_be_bytes(*first)) << 32 | u128::from(rest)) << 64;
    }
    let mut head = 0u32;
    for (index, &byte) in key.iter().enumerate() {
        head |= u32::from(byte) << (24 - 8 * index);
    }
    u128::from(head) << 96
}

/// Returns `head` of a key of unpredictable length, where a mispredicted branch on the length would cost more
/// than the loads: 4 overlapping loads at clamped offsets cover lengths from 4 to 16, 3 cover shorter keys,
/// and a conditional move selects between them.
#[inline(always)]
pub(crate) fn head_of_any_length(key: &[u8]) -> u128 {
    if let Some(first) = key.first_chunk::<16>() {
        return u128::from_be_bytes(*first);
    }
    let wide = select_unpredictable(key.len() >= 4, key, FILLER);
    let last = wide.len() - 4;
    let second = last.min(4);
    let third = last.min(8);
    let high = u64::from(load(wide, 0)) << 32 | new_bytes(load(wide, second), second);
    let low = new_bytes(load(wide, third), third - second) << 32
        | new_bytes(load(wide, last), last - third);
    let narrow = select_unpredictable(key.len().wrapping_sub(1) < 3, key, FILLER);
    let bytes = u32::from_be_bytes([
        narrow[0],
        narrow[narrow.len() / 2],
        narrow[narrow.len() - 1],
        0,
    ]);
    let bytes = bytes & !(u32::MAX >> (8 * narrow.len().min(3)));
    u128::from(high | u64::from(bytes) << 32) << 64 | u128::from(low)
}

/// Replaces a key that is too short for a load.
const FILLER: &[u8] = &[0; 4];

#[inline(always)]
fn load(bytes: &[u8], at: usize) -> u32 {
    let mut loaded = [0; 4];
    loaded.copy_from_slice(&bytes[at..at + 4]);
    u32::from_be_bytes(loaded)
}

/// Returns the last `count` of four bytes, moved to the front; the first ones were loaded before.
#[inline(always)]
fn new_bytes(loaded: u32, count: usize) -> u64 {
    u64::from((u64::from(loaded) << (32 - 8 * count)) as u32)
}

/// How many bytes of a key an error message shows.
const SHOWN_MAX: usize = 64;

/// Quotes and escapes a key for an error message, and cuts it at 64 bytes.
pub(crate) fn quote(key: &[u8]) -> String {
    let cut = &key[..key.len().min(SHOWN_MAX)];
    let dots = if cut.len() < key.len() { "..." } else { "" };
    format!("\"{}{dots}\"", cut.escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::{head, head_of_any_length};

    #[test]
    fn head_pads_the_first_16_bytes_with_zeros() {
        let bytes: Vec<u8> = (1..=40).map(|byte| byte * 6).collect();
        for len in 0..bytes.len() {
            let mut padded = [0; 16];
            padded[..len.min(16)].copy_from_slice(&bytes[..len.min(16)]);
            assert_eq!(
                head(&bytes[..len]),
                u128::from_be_bytes(padded),
                "length {len}"
            );
            assert_eq!(
                head_of_any_length(&bytes[..len]),
                u128::from_be_bytes(padded),
                "length {len}"
            );
        }
    }
}
