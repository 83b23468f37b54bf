//! What the kernel is told of a mapped segment while a cursor walks over one partition of it.
//!
//! Owns when it is told, and of which bytes. A merge reads a hundred files in turn, in which the kernel by
//! itself sees no order: it reads too little ahead, and what was read long ago stays in the page cache as
//! long as what comes next.

use std::ops::Range;

use rustix::mm::Advice;

use super::mapped::Mapped;

/// How far a cursor goes before the kernel is told again.
const WINDOW_BYTES: u64 = 512 << 10;

/// Ranges begin at a page, whatever its size.
const PAGE_BYTES_MAX: u64 = 64 << 10;

/// How far the kernel knows of a walk.
#[derive(Debug)]
pub(super) struct ReadAhead {
    /// The partition's bytes in the file: what lies beside them is read by others.
    partition: Range<u64>,
    /// Where the cursor may be without that the kernel has to be told again; at first nowhere.
    told: Range<u64>,
}

impl ReadAhead {
    pub(super) fn new(partition: Range<u64>) -> ReadAhead {
        ReadAhead { partition, told: 0..0 }
    }

    /// The cursor comes to this offset in the file: what is behind it may be taken back first, what comes
    /// next had better be read now. Nothing is dropped: a page that is wanted again is there unless memory
    /// was short. A kernel that does not know the advice reads as before.
    pub(super) fn moved(&mut self, map: &Mapped, offset: u64) {
        if let Some([behind, ahead]) = self.ranges(offset) {
            let _ = map.advise(behind, Advice::LinuxCold);
            let _ = map.advise(ahead, Advice::WillNeed);
        }
    }

    fn ranges(&mut self, offset: u64) -> Option<[Range<u64>; 2]> {
        if self.told.contains(&offset) {
            return None;
        }
        let page = offset / PAGE_BYTES_MAX * PAGE_BYTES_MAX;
        let first = self.partition.start.next_multiple_of(PAGE_BYTES_MAX);
        let behind = self.told.start.max(first).min(page)..page;
        self.told = page..offset + WINDOW_BYTES;
        Some([behind, page..(offset + 2 * WINDOW_BYTES).min(self.partition.end)])
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::{Advice, Mapped, PAGE_BYTES_MAX, ReadAhead, WINDOW_BYTES};

    const PAGE: u64 = PAGE_BYTES_MAX;

    #[test]
    fn the_kernel_is_told_once_a_window_of_the_partition_alone() {
        let (start, end) = (PAGE + 10, PAGE + 10 + 3 * WINDOW_BYTES);
        let mut ahead = ReadAhead::new(start..end);
        let second = 2 * PAGE + WINDOW_BYTES;
        let table = [
            (start, Some([PAGE..PAGE, PAGE..start + 2 * WINDOW_BYTES])),
            (start + 1, None),
            (start + WINDOW_BYTES - 1, None),
            (start + WINDOW_BYTES + PAGE, Some([2 * PAGE..second, second..end])),
            (start + 2 * WINDOW_BYTES, None),
            // Back to the start, as after a seek: nothing is behind it.
            (start, Some([PAGE..PAGE, PAGE..start + 2 * WINDOW_BYTES])),
        ];
        for (offset, told) in table {
            assert_eq!(ahead.ranges(offset), told, "at {offset}");
        }
    }

    #[test]
    fn the_kernel_takes_what_it_is_told_and_the_bytes_stay() {
        let bytes: Vec<u8> = (0..3 * WINDOW_BYTES + 7).map(|at| (at / 4096) as u8).collect();
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&bytes).expect("written");
        let map = Mapped::of(&file).expect("mapped");
        let mut ahead = ReadAhead::new(5..bytes.len() as u64);
        for offset in [5, WINDOW_BYTES + 5, 2 * WINDOW_BYTES + 5] {
            let [behind, next] = ahead.ranges(offset).expect("another window");
            map.advise(behind, Advice::LinuxCold).expect("what is behind");
            map.advise(next, Advice::WillNeed).expect("what comes next");
        }
        assert!(map[..] == bytes[..]);
    }
}
