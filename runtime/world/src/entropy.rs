//! The random numbers that libraries ask the operating system for: keys of hash tables, the order in which `select!`
//! polls, names of temporary files. In this program they come from the seed, so that a run can be repeated.
//!
//! The standard library and the crate `getrandom` call the function `getrandom` of the C library. A program that
//! defines a function of that name replaces it.

#![allow(unsafe_code)] // replaces a function of the C library, which is given a pointer

use std::ffi::{c_uint, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

/// The state of a splitmix64 generator.
static STATE: AtomicU64 = AtomicU64::new(0);

/// Begins the numbers of this seed.
pub fn begin(seed: u64) {
    STATE.store(seed, Ordering::SeqCst);
}

/// Returns the next number.
fn next() -> u64 {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut mixed = STATE.fetch_add(STEP, Ordering::SeqCst).wrapping_add(STEP);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Fills a buffer with the next numbers, in the place of the function of the C library.
///
/// # Safety
/// `buffer` must be valid for writes of `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(buffer: *mut c_void, length: usize, _flags: c_uint) -> isize {
    if length == 0 {
        return 0;
    }
    // SAFETY: the caller's contract.
    let bytes = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), length) };
    for piece in bytes.chunks_mut(8) {
        let number = next().to_le_bytes();
        piece.copy_from_slice(&number[..piece.len()]);
    }
    // A slice is at most this long.
    isize::try_from(length).unwrap_or(isize::MAX)
}
