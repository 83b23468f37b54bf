//! Accounts for the swap traffic of a task process between two samples.
//!
//! The kernel counts per process the bytes in swap, not the bytes read back. Pages that leave swap were read
//! back or freed unread (such as an arena). Only a page read back takes a fault, so the faults are a bound;
//! so are the machine's swap reads, since a page counted as swapped may still be in memory. Prefetched pages
//! stay in swap by the process's count until it touches them; they are counted when they are read.

use crate::process::ProcessMemory;

/// Minimum bytes read back per fault.
const PAGE_BYTES: u64 = 4096;

/// Bytes of a process in swap, and bytes moved since the last account.
#[derive(Debug, Default)]
pub(super) struct SwapAccount {
    seen: ProcessMemory,
    /// Part of the machine's reads that is already counted.
    counted: u64,
    /// Prefetched and not touched by the process since.
    read_ahead: u64,
    out: u64,
    back: u64,
}

impl SwapAccount {
    /// Returns the bytes in swap at the last sample.
    pub(super) fn swapped(&self) -> u64 {
        self.seen.swapped
    }

    /// Adds a sample. An ended process has no swap; its faults are readable until it is reaped.
    pub(super) fn look(&mut self, now: ProcessMemory) {
        let before = std::mem::replace(&mut self.seen, now);
        self.out += now.swapped.saturating_sub(before.swapped);
        let left = before.swapped.saturating_sub(now.swapped);
        let touched = left.min(self.read_ahead);
        self.read_ahead -= touched;
        let faulted = now
            .faults
            .saturating_sub(before.faults)
            .saturating_mul(PAGE_BYTES);
        self.come_back(
            (left - touched).min(faulted.saturating_sub(touched)),
            before.machine_read,
        );
    }

    /// Counts bytes read back, at most the machine's uncounted reads since `before`.
    fn come_back(&mut self, bytes: u64, before: u64) {
        self.counted = self.counted.max(before);
        let back = bytes.min(self.seen.machine_read.saturating_sub(self.counted));
        self.counted += back;
        self.back += back;
    }

    /// Adds a sample after a prefetch of all swapped memory.
    pub(super) fn read_back(&mut self, now: ProcessMemory) {
        let before = std::mem::replace(&mut self.seen, now);
        let bytes = before.swapped.saturating_sub(self.read_ahead);
        self.come_back(bytes, before.machine_read);
        self.read_ahead = now.swapped;
    }

    /// Returns the bytes moved out and back since the last call.
    pub(super) fn take(&mut self) -> (u64, u64) {
        (
            std::mem::take(&mut self.out),
            std::mem::take(&mut self.back),
        )
    }

    /// Returns whether any bytes moved since then.
    pub(super) fn has_moved(&self) -> bool {
        self.out > 0 || self.back > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEBI: u64 = 1 << 20;

    /// Takes samples: MiB in swap, faulted in, and read by the machine since the start. A step with `read` is
    /// the sample after a complete prefetch.
    fn check(steps: &str, out: u64, back: u64) {
        let mut account = SwapAccount::default();
        for step in steps.split(", ") {
            let (looks, step) = step
                .split_once(' ')
                .map_or((true, step), |(_, step)| (false, step));
            let numbers: Vec<u64> = step
                .split('/')
                .map(|text| text.parse::<u64>().expect("a number") * MEBI)
                .collect();
            let [swapped, faulted, machine_read] = numbers[..] else {
                panic!("three numbers: {step}")
            };
            let now = ProcessMemory {
                resident: 0,
                swapped,
                faults: faulted / PAGE_BYTES,
                machine_read,
            };
            if looks {
                account.look(now)
            } else {
                account.read_back(now)
            }
        }
        assert_eq!(account.take(), (out * MEBI, back * MEBI), "{steps}");
        assert!(!account.has_moved());
    }

    #[test]
    fn faulted_pages_count_as_read_back() {
        check("0/10/0, 200/10/0", 200, 0);
        check("200/10/0, 150/60/90, 0/210/900", 200, 200);
    }

    #[test]
    fn freed_pages_do_not_count_as_read_back() {
        check("200/10/0, 0/10/900", 200, 0);
        check("200/10/0, 0/40/900", 200, 30);
    }

    #[test]
    fn pages_still_in_memory_do_not_count_as_read_back() {
        check("200/10/5, 0/210/5", 200, 0);
        check("200/10/5, read 200/10/25, 0/210/30", 200, 20);
    }

    #[test]
    fn prefetched_pages_are_counted_once() {
        check("200/10/0, read 200/10/200", 200, 200);
        check("200/10/0, read 200/10/200, 150/60/200, 0/210/200", 200, 200);
        check(
            "200/10/0, read 200/10/200, 150/60/200, 180/60/200, read 180/60/230",
            230,
            230,
        );
    }

    #[test]
    fn pages_swapped_twice_are_counted_twice() {
        check("100/0/0, 0/100/100, 100/100/100, 0/200/200", 200, 200);
    }
}
