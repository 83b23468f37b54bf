//! Anonymous memory that costs nothing until it is touched.
//!
//! Owns mapping, unmapping and huge pages. What lies in the memory is the business of whoever maps it: the
//! sort arena and the combine table. How much of it may be touched is granted by the budget, not here.
#![allow(unsafe_code)] // maps memory

use std::ops::Range;
use std::ptr::{self, NonNull};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// The size of a huge page, and the unit in which large buffers grow.
pub(crate) const CHUNK_BYTES: usize = 2 << 20;

/// A private, zeroed mapping, aligned to a chunk when it is at least one chunk long.
#[derive(Debug)]
pub(crate) struct Region {
    base: NonNull<u8>,
    len: usize,
    mapped: NonNull<u8>,
    mapped_len: usize,
}

// SAFETY: the region owns its memory alone; access goes through whoever owns the region.
unsafe impl Send for Region {}

impl Region {
    /// Reserves `len` bytes of address space. Nothing of it counts as used before it is written.
    pub(crate) fn reserve(len: usize) -> Region {
        let align = if len >= CHUNK_BYTES { CHUNK_BYTES } else { 4096 };
        let mapped_len = len.max(1).next_multiple_of(4096) + align - 4096;
        // Miri knows no other flag.
        let reserve = if cfg!(miri) { MapFlags::empty() } else { MapFlags::NORESERVE };
        let flags = MapFlags::PRIVATE | reserve;
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice touches no other memory.
        let mapped =
            unsafe { mmap_anonymous(ptr::null_mut(), mapped_len, ProtFlags::READ | ProtFlags::WRITE, flags) };
        // As the global allocator does, give up when the system has no address space left.
        let Some(mapped) = mapped.ok().and_then(|address| NonNull::new(address.cast::<u8>())) else {
            std::alloc::handle_alloc_error(std::alloc::Layout::new::<[u8; CHUNK_BYTES]>());
        };
        let skipped = mapped.align_offset(align);
        // SAFETY: `mapped_len` has room for `align - 4096` bytes of alignment before `len` bytes.
        let base = unsafe { mapped.add(skipped) };
        Region { base, len, mapped, mapped_len }
    }

    /// Asks for huge pages in the whole chunks of a range: random access over many megabytes costs several
    /// times as much on small pages. Touching a byte then clears a whole chunk.
    pub(crate) fn prefer_huge_pages(&self, range: Range<usize>) {
        let start = range.start.next_multiple_of(CHUNK_BYTES);
        let end = range.end.min(self.len) / CHUNK_BYTES * CHUNK_BYTES;
        // Miri knows no advice.
        if start >= end || cfg!(miri) {
            return;
        }
        // SAFETY: the range lies inside the mapping, and the advice does not change its contents. A kernel
        // without huge pages refuses it, which is as good.
        let _ = unsafe { madvise(self.base.as_ptr().add(start).cast(), end - start, Advice::LinuxHugepage) };
    }

    /// The first byte.
    #[inline]
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Length in bytes.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `reserve` and nothing borrows it any more. It cannot fail for a
        // whole mapping.
        let _ = unsafe { munmap(self.mapped.as_ptr().cast(), self.mapped_len) };
    }
}

/// Starts loading the cache line at `bytes[at]`. A hint: it changes nothing but time, even beyond the end.
#[inline(always)]
pub(crate) fn prefetch(bytes: &[u8], at: usize) {
    prefetch_address(bytes.as_ptr().wrapping_add(at));
}

/// Starts loading the cache line at an address, valid or not. A hint: it changes nothing but time.
#[inline(always)]
pub(crate) fn prefetch_address(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing that the program sees and never faults, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Starts loading the cache line of an entry that will be written soon. A hint: it changes nothing but time,
/// even beyond the end.
#[inline(always)]
pub(crate) fn prefetch_write(entries: &[u128], at: usize) {
    let address = entries.as_ptr().wrapping_add(at);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing that the program sees and never faults, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_ET0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
