//! A block of bytes that the records being emitted lie in. Packing a key can then load 16 bytes from its
//! start, past the end of the key but never past the block.
#![allow(unsafe_code)] // reads the block through a raw pointer

use std::cell::Cell;
use std::ptr;

/// Bytes of one load.
pub(crate) const LOAD_BYTES: usize = 16;

/// A block's first byte, and the number of offsets at which a 16-byte load stays inside it.
type Block = (*const u8, usize);

thread_local! {
    /// The block lent on this thread. It is set only while `lend` runs, which borrows it.
    static LENT: Cell<Block> = const { Cell::new((ptr::null(), 0)) };
}

/// Runs `work`, which emits keys that lie in `block`, such as the words of a line of text. These keys are
/// packed by one load of 16 bytes; keys outside the block work too, but slower.
///
/// ```
/// let block = "to be or not";
/// let words = napreduce_data::lend(block.as_bytes(), || block.split(' ').count());
/// assert_eq!(words, 4);
/// ```
#[inline]
pub fn lend<R>(block: &[u8], work: impl FnOnce() -> R) -> R {
    struct Restore(Block);

    impl Drop for Restore {
        fn drop(&mut self) {
            LENT.set(self.0);
        }
    }

    // Restored before the borrow of the block ends, also if `work` panics.
    let _restore =
        Restore(LENT.replace((block.as_ptr(), block.len().saturating_sub(LOAD_BYTES - 1))));
    work()
}

/// Loads 16 bytes from the start of `key`, if they lie in the lent block.
#[inline(always)]
pub(crate) fn load(key: &[u8]) -> Option<[u8; LOAD_BYTES]> {
    let (start, places) = LENT.get();
    let at = key.as_ptr().addr().wrapping_sub(start.addr());
    if at >= places {
        return None;
    }
    // SAFETY: `at` is an offset from which 16 bytes lie in the block, and the pointer is derived from the
    // block, not from the key. The block stays borrowed for reading on this thread while it is lent, so nothing
    // writes to it. The key is alive at the same address, so the bytes they share are the same.
    Some(unsafe { start.add(at).cast::<[u8; LOAD_BYTES]>().read_unaligned() })
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn load_stays_inside_the_lent_block() {
        let block: Vec<u8> = (0..40).collect();
        let other = block.clone();
        assert_eq!(load(&block), None);
        lend(&block, || {
            for at in 0..=block.len() {
                let whole = block.get(at..at + LOAD_BYTES);
                assert_eq!(
                    load(&block[at..]).as_ref().map(|bytes| bytes.as_slice()),
                    whole
                );
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
    fn load_from_a_short_block_returns_none() {
        for length in 0..LOAD_BYTES {
            let block = vec![1; length];
            lend(&block, || assert_eq!(load(&block), None));
        }
    }

    #[test]
    fn lend_restores_the_block_after_a_panic() {
        let block = [0; 32];
        let panicked = catch_unwind(AssertUnwindSafe(|| lend(&block, || panic!("deliberate"))));
        assert!(panicked.is_err());
        assert_eq!(load(&block), None);
    }
}
