//! Giving memory back to the kernel that the allocator keeps for later.
//!
//! Owns the call into the C library, where it has one. Does not own what the user's code holds.
#![allow(unsafe_code)] // A call into the C library.

/// Gives back what the allocator holds and nobody uses; without the GNU C library, nothing.
pub fn trim_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes the allocator's own locks and changes nothing that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
}
