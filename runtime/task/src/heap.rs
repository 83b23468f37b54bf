//! Returns unused allocator memory to the kernel.
#![allow(unsafe_code)] // calls malloc_trim

/// Returns unused memory of the allocator to the kernel. Does nothing without the GNU C library.
pub fn trim_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes the allocator's own locks and changes nothing that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
}
