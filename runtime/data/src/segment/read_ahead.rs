//! What the kernel is told of a mapped segment while a cursor walks over one partition of it.
//!
//! Owns when it is told, and of which bytes. A merge reads a hundred files in turn, in which the kernel by
//! itself sees no order: it reads too little ahead, and what was read long ago stays in the page cache as
//! long as what comes next.
#![allow(unsafe_code)] // advises on mapped files

use std::ops::Range;

use memmap2::Mmap;
use rustix::mm::{Advice, madvise};

/// How far a cursor goes before the kernel is told again.
const WINDOW_BYTES: usize = 512 << 10;

/// Ranges begin at a page, whatever its size.
const PAGE_BYTES_MAX: usize = 64 << 10;

/// How far the kernel knows of a walk.
#[derive(Debug)]
pub(super) struct ReadAhead {
    /// The partition's bytes in the file: what lies beside them is read by others.
    partition: Range<usize>,
    /// Where the cursor was when the kernel was last told.
    told: Option<usize>,
}

impl ReadAhead {
    pub(super) fn new(partition: Range<u64>) -> ReadAhead {
        ReadAhead { partition: partition.start as usize..partition.end as usize, told: None }
    }

    /// The cursor comes to this offset in the file: what is behind it may be taken back first, what comes
    /// next had better be read now. Nothing is dropped: a page that is wanted again is there unless memory
    /// was short.
    pub(super) fn moved(&mut self, map: &Mmap, offset: u64) {
        let Some((behind, ahead)) = self.ranges(offset as usize) else { return };
        for (range, advice) in [(behind, Advice::LinuxCold), (ahead, Advice::WillNeed)] {
            let Some(bytes) = map.get(range).filter(|bytes| !bytes.is_empty()) else { continue };
            // SAFETY: the range lies inside the mapping, and neither advice changes what it holds.
            let advised = unsafe { madvise(bytes.as_ptr().cast_mut().cast(), bytes.len(), advice) };
            // A kernel that does not know the advice reads as before.
            let _ = advised;
        }
    }

    fn ranges(&mut self, offset: usize) -> Option<(Range<usize>, Range<usize>)> {
        let told = self.told.unwrap_or(offset);
        if self.told.is_some() && (told..told + WINDOW_BYTES).contains(&offset) {
            return None;
        }
        self.told = Some(offset);
        let page = offset / PAGE_BYTES_MAX * PAGE_BYTES_MAX;
        let first = self.partition.start.next_multiple_of(PAGE_BYTES_MAX);
        let behind = (told / PAGE_BYTES_MAX * PAGE_BYTES_MAX).max(first).min(page);
        Some((behind..page, page..(offset + 2 * WINDOW_BYTES).min(self.partition.end)))
    }
}

#[cfg(test)]
mod tests {
    use super::{PAGE_BYTES_MAX, ReadAhead, WINDOW_BYTES};

    const PAGE: usize = PAGE_BYTES_MAX;

    #[test]
    fn the_kernel_is_told_once_a_window_of_the_partition_alone() {
        let (start, end) = (PAGE + 10, PAGE + 10 + 3 * WINDOW_BYTES);
        let mut ahead = ReadAhead::new(start as u64..end as u64);
        let table = [
            (start, Some((PAGE..PAGE, PAGE..start + 2 * WINDOW_BYTES))),
            (start + 1, None),
            (start + WINDOW_BYTES - 1, None),
            (
                start + WINDOW_BYTES + PAGE,
                Some((2 * PAGE..2 * PAGE + WINDOW_BYTES, 2 * PAGE + WINDOW_BYTES..end)),
            ),
            (start + 2 * WINDOW_BYTES, None),
            // Back to the start, as after a seek: nothing is behind it.
            (start, Some((PAGE..PAGE, PAGE..start + 2 * WINDOW_BYTES))),
        ];
        for (offset, told) in table {
            assert_eq!(ahead.ranges(offset), told, "at {offset}");
        }
    }
}
