//! Newlines or white space among 64 bytes as a bit mask: SSE2 on x86-64, portable code elsewhere.
#![allow(unsafe_code)] // calls SSE2 intrinsics

/// Bytes per mask.
pub const GROUP_BYTES: usize = 64;

/// Sets bit `i` if byte `i` is a newline.
#[inline]
#[must_use]
pub fn newline_mask(group: &[u8; GROUP_BYTES]) -> u64 {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    // SAFETY: `cfg` checked that SSE2 is enabled for the whole program.
    let mask = unsafe { sse2::newlines(group) };
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
    let mask = mask_of(group, |byte| byte == b'\n');
    mask
}

/// Sets bit `i` if byte `i` is ASCII white space as in [`u8::is_ascii_whitespace`].
#[inline]
#[must_use]
pub fn white_mask(group: &[u8; GROUP_BYTES]) -> u64 {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    // SAFETY: `cfg` checked that SSE2 is enabled for the whole program.
    let mask = unsafe { sse2::white(group) };
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
    let mask = mask_of(group, |byte| byte.is_ascii_whitespace());
    mask
}

#[cfg(any(test, not(all(target_arch = "x86_64", target_feature = "sse2"))))]
#[inline]
fn mask_of(group: &[u8; GROUP_BYTES], class: impl Fn(u8) -> bool) -> u64 {
    // The compiler vectorizes the comparison; the multiplication gathers eight bytes of 0 or 1 into eight bits.
    let found = group.map(|byte| u8::from(class(byte)));
    let (eights, _) = found.as_chunks::<8>();
    eights.iter().rev().fold(0, |mask, eight| {
        mask << 8 | u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56
    })
}

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod sse2 {
    use std::arch::x86_64::{
        __m128i, _mm_andnot_si128, _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128,
        _mm_set_epi64x, _mm_set1_epi8, _mm_sub_epi8,
    };

    use super::GROUP_BYTES;

    #[inline]
    #[target_feature(enable = "sse2")]
    pub(super) fn newlines(group: &[u8; GROUP_BYTES]) -> u64 {
        let newline = _mm_set1_epi8(b'\n' as i8);
        quarters(group).rev().fold(0, |mask, bytes| {
            mask << 16 | bits(_mm_cmpeq_epi8(bytes, newline))
        })
    }

    /// TAB to CR is one range; VT in its middle is not white space.
    #[inline]
    #[target_feature(enable = "sse2")]
    pub(super) fn white(group: &[u8; GROUP_BYTES]) -> u64 {
        let tab = _mm_set1_epi8(b'\t' as i8);
        let width = _mm_set1_epi8((b'\r' - b'\t') as i8);
        let vertical_tab = _mm_set1_epi8(0x0b);
        let space = _mm_set1_epi8(b' ' as i8);
        quarters(group).rev().fold(0, |mask, bytes| {
            let from_tab = _mm_sub_epi8(bytes, tab);
            let control = _mm_cmpeq_epi8(_mm_min_epu8(from_tab, width), from_tab);
            let control = _mm_andnot_si128(_mm_cmpeq_epi8(bytes, vertical_tab), control);
            mask << 16 | bits(_mm_or_si128(control, _mm_cmpeq_epi8(bytes, space)))
        })
    }

    /// The group as four vectors; each compiles to one load.
    #[inline]
    #[target_feature(enable = "sse2")]
    fn quarters(group: &[u8; GROUP_BYTES]) -> impl DoubleEndedIterator<Item = __m128i> {
        let (eights, _) = group.as_chunks::<8>();
        let (pairs, _) = eights.as_chunks::<2>();
        pairs
            .iter()
            .map(|[low, high]| _mm_set_epi64x(i64::from_le_bytes(*high), i64::from_le_bytes(*low)))
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn bits(found: __m128i) -> u64 {
        u64::from(_mm_movemask_epi8(found) as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_match_every_byte_at_every_offset() {
        // Miri is slow.
        let step = if cfg!(miri) { 9 } else { 1 };
        for byte in 0..=u8::MAX {
            for at in (0..GROUP_BYTES).step_by(step) {
                let mut group = [b'x'; GROUP_BYTES];
                group[at] = byte;
                assert_eq!(
                    newline_mask(&group),
                    u64::from(byte == b'\n') << at,
                    "byte {byte} at {at}"
                );
                assert_eq!(
                    white_mask(&group),
                    u64::from(byte.is_ascii_whitespace()) << at,
                    "byte {byte} at {at}"
                );
            }
            let group = [byte; GROUP_BYTES];
            assert_eq!(newline_mask(&group), mask_of(&group, |byte| byte == b'\n'));
            assert_eq!(
                white_mask(&group),
                mask_of(&group, |byte| byte.is_ascii_whitespace())
            );
        }
    }
}
