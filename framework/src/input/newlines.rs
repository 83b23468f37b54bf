//! Where the newlines in a block are.
//!
//! Owns the search. It writes positions into a list without a branch that depends on the text: for lines of
//! usual length that takes about half of the time that calling `memchr` for each line does. Does not own what
//! a line is.

use napreduce_data::{GROUP_BYTES, newline_mask};

/// Bytes of a block that are searched at a time.
pub(super) const PART_BYTES: usize = 4096;
/// Newlines of a group that are noted without asking whether they are there.
const EXPECTED: usize = 2;

/// A list for the newlines of one part.
pub(super) struct Newlines {
    positions: [u16; PART_BYTES + GROUP_BYTES],
}

impl Newlines {
    pub(super) fn new() -> Self {
        Newlines { positions: [0; PART_BYTES + GROUP_BYTES] }
    }

    /// The positions of all newlines in `part`, which has at most [`PART_BYTES`] bytes.
    #[inline]
    pub(super) fn find(&mut self, part: &[u8]) -> &[u16] {
        let (groups, rest) = part.as_chunks::<GROUP_BYTES>();
        let mut count = 0;
        let mut offset = 0;
        for group in groups {
            count += self.note(count, offset, newline_mask(group));
            offset += GROUP_BYTES as u16;
        }
        if !rest.is_empty() {
            let mut last = [0; GROUP_BYTES];
            last[..rest.len()].copy_from_slice(rest);
            count += self.note(count, offset, newline_mask(&last));
        }
        &self.positions[..count]
    }

    /// Notes the set bits of `mask`, counted from `offset`, behind the first `count` positions, and returns
    /// how many.
    #[inline]
    fn note(&mut self, count: usize, offset: u16, mut mask: u64) -> usize {
        let found = mask.count_ones() as usize;
        let slots = &mut self.positions[count..count + GROUP_BYTES];
        for slot in &mut slots[..EXPECTED] {
            *slot = offset + mask.trailing_zeros() as u16;
            mask &= mask.wrapping_sub(1);
        }
        let mut next = EXPECTED;
        while mask != 0 {
            slots[next] = offset + mask.trailing_zeros() as u16;
            mask &= mask - 1;
            next += 1;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn check(part: &[u8]) {
        let naive: Vec<u16> = (0..).zip(part).filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at).collect();
        assert_eq!(Newlines::new().find(part), naive);
    }

    proptest! {
        #[test]
        fn all_newlines_are_found(part in vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..300)) {
            check(&part);
        }
    }

    #[test]
    fn a_part_may_be_full_of_newlines_or_have_one_anywhere() {
        check(&[b'\n'; PART_BYTES]);
        for at in 0..PART_BYTES {
            let mut part = [b'\x0B'; PART_BYTES];
            part[at] = b'\n';
            check(&part);
            check(&part[..=at]);
        }
    }
}
