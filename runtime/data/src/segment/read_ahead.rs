//! Read-ahead advice for a mapped segment while a cursor moves over one partition. A merge reads a hundred
//! files in turn, which the kernel cannot recognize as sequential: on its own it reads too little ahead and
//! keeps consumed pages in the page cache.

use std::ops::Range;

use rustix::mm::Advice;

use super::mapped::Mapped;

/// How far a cursor moves between two calls of madvise.
const WINDOW_BYTES: u64 = 512 << 10;

/// The largest page size, to which ranges are aligned.
const PAGE_BYTES_MAX: u64 = 64 << 10;

/// The read-ahead state of one cursor.
#[derive(Debug)]
pub(super) struct ReadAhead {
    /// The partition's bytes in the file; other tasks read the bytes around them.
    partition: Range<u64>,
    /// While the cursor is in this range, no new advice is needed.
    advised: Range<u64>,
}

impl ReadAhead {
    pub(super) fn new(partition: Range<u64>) -> ReadAhead {
        ReadAhead {
            partition,
            advised: 0..0,
        }
    }

    /// Advises the kernel when the cursor reaches `offset`: consumed pages may be reclaimed first, the next ones
    /// should be read. A page that is read again is still there unless memory was short. Errors are ignored:
    /// a kernel without this advice reads as usual.
    pub(super) fn advance(&mut self, map: &Mapped, offset: u64) {
        if let Some([behind, ahead]) = self.ranges(offset) {
            let _ = map.advise(behind, Advice::LinuxCold);
            let _ = map.advise(ahead, Advice::WillNeed);
        }
    }

    fn ranges(&mut self, offset: u64) -> Option<[Range<u64>; 2]> {
        if self.advised.contains(&offset) {
            return None;
        }
        let page = offset / PAGE_BYTES_MAX * PAGE_BYTES_MAX;
        let first = self.partition.start.next_multiple_of(PAGE_BYTES_MAX);
        let behind = self.advised.start.max(first).min(page)..page;
        self.advised = page..offset + WINDOW_BYTES;
        Some([
            behind,
            page..(offset + 2 * WINDOW_BYTES).min(self.partition.end),
        ])
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::{Advice, Mapped, PAGE_BYTES_MAX, ReadAhead, WINDOW_BYTES};

    const PAGE: u64 = PAGE_BYTES_MAX;

    #[test]
    fn advice_is_given_once_per_window_inside_the_partition() {
        let start = PAGE + 10;
        let end = PAGE + 10 + 3 * WINDOW_BYTES;
        let mut ahead = ReadAhead::new(start..end);
        let second = 2 * PAGE + WINDOW_BYTES;
        let table = [
            (start, Some([PAGE..PAGE, PAGE..start + 2 * WINDOW_BYTES])),
            (start + 1, None),
            (start + WINDOW_BYTES - 1, None),
            (
                start + WINDOW_BYTES + PAGE,
                Some([2 * PAGE..second, second..end]),
            ),
            (start + 2 * WINDOW_BYTES, None),
            // A seek back to the start: nothing is behind it.
            (start, Some([PAGE..PAGE, PAGE..start + 2 * WINDOW_BYTES])),
        ];
        for (offset, advised) in table {
            assert_eq!(ahead.ranges(offset), advised, "at {offset}");
        }
    }

    #[test]
    fn advice_leaves_the_bytes_unchanged() {
        let bytes: Vec<u8> = (0..3 * WINDOW_BYTES + 7)
            .map(|at| (at / 4096) as u8)
            .collect();
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&bytes).expect("written");
        let map = Mapped::new(&file).expect("mapped");
        let mut ahead = ReadAhead::new(5..bytes.len() as u64);
        for offset in [5, WINDOW_BYTES + 5, 2 * WINDOW_BYTES + 5] {
            let [behind, next] = ahead.ranges(offset).expect("another window");
            map.advise(behind, Advice::LinuxCold)
                .expect("advice for consumed pages");
            map.advise(next, Advice::WillNeed)
                .expect("advice for the next pages");
        }
        assert!(map[..] == bytes[..]);
    }
}
