//! The block of bytes that records are read from just now, lent to whoever packs their keys.
//!
//! Owns the one load of 16 bytes from where a key begins, which may run past the key, but never past the
//! block. Does not own the block, nor what is done with the bytes (`collect::packed`).
#![allow(unsafe_code)] // reads a block through the pointer that its borrower left

use std::cell::Cell;
use std::ptr;

/// Bytes of one load.
pub(crate) const LOAD_BYTES: usize = 16;

/// A block by its first byte, and at how many of its bytes a load may begin.
type Block = (*const u8, usize);

thread_local! {
    /// The block lent to this thread. While a block is here, `lend` is running on this thread and borrows it.
    static LENT: Cell<Block> = const { Cell::new((ptr::null(), 0)) };
}

/// Runs `work`, which emits keys that lie in `block`, as those of a line of text do: such keys are then
/// packed by one load, whatever their length. All other keys are as good, but slower.
///
/// ```
/// let block = "to be or not";
/// let words = napreduce_data::lend(block.as_bytes(), || block.split(' ').count());
/// assert_eq!(words, 4);
/// ```
#[inline]
pub fn lend<R>(block: &[u8], work: impl FnOnce() -> R) -> R {
    struct TakeBack(Block);

    impl Drop for TakeBack {
        fn drop(&mut self) {
            LENT.set(self.0);
        }
    }

    // Taken back before the borrow of the block ends, also when `work` panics.
    let _take_back = TakeBack(LENT.replace((block.as_ptr(), block.len().saturating_sub(LOAD_BYTES - 1))));
    work()
}

/// The 16 bytes from where `key` begins, when they lie in the block that is lent.
#[inline(always)]
pub(crate) fn load(key: &[u8]) -> Option<[u8; LOAD_BYTES]> {
    let (start, places) = LENT.get();
    let at = key.as_ptr().addr().wrapping_sub(start.addr());
    if at >= places {
        return None;
    }
    // SAFETY: `at` is one of the places from which 16 bytes lie in the block, and the pointer is that of the
    // block itself, not of the key. The block is borrowed for reading for as long as it is lent, on this
    // thread, so nothing writes to it meanwhile. The key is alive and at the same address, so what the two
    // have in common are the same bytes.
    Some(unsafe { start.add(at).cast::<[u8; LOAD_BYTES]>().read_unaligned() })
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn loads_stay_in_the_block_and_end_with_the_loan() {
        let block: Vec<u8> = (0..40).collect();
        let other = block.clone();
        assert_eq!(load(&block), None);
        lend(&block, || {
            for at in 0..=block.len() {
                let whole = block.get(at..at + LOAD_BYTES);
                assert_eq!(load(&block[at..]).as_ref().map(|bytes| bytes.as_slice()), whole);
                assert_eq!(load(&block[at..at]).is_some(), whole.is_some());
            }
            assert_eq!(load(&other), None);
            lend(&other[..20], || {
                assert_eq!(load(&other[4..7]).map(|bytes| bytes[0]), Some(4));
                assert_eq!((load(&other[5..7]), load(&block)), (None, None));
            });
            assert!(load(&block).is_some());
        });
        assert_eq!(load(&block), None);
    }

    #[test]
    fn a_block_too_short_for_a_load_is_not_read() {
        for length in 0..LOAD_BYTES {
            let block = vec![1; length];
            lend(&block, || assert_eq!(load(&block), None));
        }
    }

    #[test]
    fn a_panic_ends_the_loan() {
        let block = [0; 32];
        let panicked = catch_unwind(AssertUnwindSafe(|| lend(&block, || panic!("on purpose"))));
        assert!(panicked.is_err());
        assert_eq!(load(&block), None);
    }
}
