//! Anonymous memory mappings for the sort arena and the combine table: pages cost nothing until touched.
#![allow(unsafe_code)] // maps memory

use std::ops::Range;
use std::ptr::{self, NonNull};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// The size of a huge page, and the unit in which large buffers grow.
pub(crate) const CHUNK_BYTES: usize = 2 << 20;

/// A private, zeroed mapping. From 2 MiB on it is aligned to a huge page.
#[derive(Debug)]
pub(crate) struct Region {
    base: NonNull<u8>,
    len: usize,
    mapped: NonNull<u8>,
    mapped_len: usize,
}

// SAFETY: the region has exclusive ownership of its mapping.
unsafe impl Send for Region {}

impl Region {
    /// Reserves `len` bytes of address space. Pages are allocated when they are written.
    pub(crate) fn reserve(len: usize) -> Region {
        let align = if len >= CHUNK_BYTES {
            CHUNK_BYTES
        } else {
            4096
        };
        let mapped_len = len.max(1).next_multiple_of(4096) + align - 4096;
        // Miri does not support NORESERVE.
        let reserve = if cfg!(miri) {
            MapFlags::empty()
        } else {
            MapFlags::NORESERVE
        };
        let flags = MapFlags::PRIVATE | reserve;
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice touches no other memory.
        let mapped = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                mapped_len,
                ProtFlags::READ | ProtFlags::WRITE,
                flags,
            )
        };
        // Abort as the global allocator does when address space runs out.
        let Some(mapped) = mapped
            .ok()
            .and_then(|address| NonNull::new(address.cast::<u8>()))
        else {
            std::alloc::handle_alloc_error(std::alloc::Layout::new::<[u8; CHUNK_BYTES]>());
        };
        let skipped = mapped.align_offset(align);
        // SAFETY: `mapped_len` has room for `align - 4096` bytes of alignment before `len` bytes.
        let base = unsafe { mapped.add(skipped) };
        Region {
            base,
            len,
            mapped,
            mapped_len,
        }
    }

    /// Requests huge pages for the whole chunks of a range: random access over many megabytes is several times
    /// slower on small pages. The first write to a chunk then clears all of it.
    pub(crate) fn prefer_huge_pages(&self, range: Range<usize>) {
        let start = range.start.next_multiple_of(CHUNK_BYTES);
        let end = range.end.min(self.len) / CHUNK_BYTES * CHUNK_BYTES;
        // Miri does not support madvise.
        if start >= end || cfg!(miri) {
            return;
        }
        // SAFETY: the range lies inside the mapping, and the advice does not change its contents. A kernel
        // without huge pages rejects it, which only costs speed.
        let _ = unsafe {
            madvise(
                self.base.as_ptr().add(start).cast(),
                end - start,
                Advice::LinuxHugepage,
            )
        };
    }

    #[inline]
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: `reserve` made the mapping and nothing borrows it any more. Unmapping a whole mapping
        // cannot fail.
        let _ = unsafe { munmap(self.mapped.as_ptr().cast(), self.mapped_len) };
    }
}

/// Prefetches the cache line at `bytes[at]`, which may lie beyond the end.
#[inline(always)]
pub(crate) fn prefetch(bytes: &[u8], at: usize) {
    prefetch_address(bytes.as_ptr().wrapping_add(at));
}

/// Prefetches the cache line at an address, valid or not.
#[inline(always)]
pub(crate) fn prefetch_address(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no visible effect and never faults, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Prefetches the cache line at `entries[at]` for writing; it may lie beyond the end.
#[inline(always)]
pub(crate) fn prefetch_write(entries: &[u128], at: usize) {
    let address = entries.as_ptr().wrapping_add(at);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no visible effect and never faults, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_ET0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
