//! How much of a task process goes to swap, and how much of that comes back.
//!
//! Owns the sums between two accounts. Does not own when memory is moved (`suspension`) nor how it is (`process`).
//!
//! The kernel counts per process what is in swap, not what came back. What leaves swap has come back or was given up unread
//! (an arena that is freed); only a page that comes back takes a fault, so the faults are a bound. Pages that were read in
//! advance stay in swap by the process's own count until it touches them: they are counted when they are read.

use crate::process::ProcessMemory;

/// The smallest piece that comes back by one fault, in bytes.
const PAGE_BYTES: u64 = 4096;

/// What a process has in swap, and what moved since the last account. All in bytes.
#[derive(Debug, Default)]
pub(super) struct SwapAccount {
    seen: ProcessMemory,
    /// Read in advance, and not touched by the process since.
    read_ahead: u64,
    out: u64,
    back: u64,
}

impl SwapAccount {
    /// What is in swap by the last look.
    pub(super) fn swapped(&self) -> u64 {
        self.seen.swapped
    }

    /// Takes in how the process is now. One that has ended has nothing in swap, and its faults are known until it is reaped.
    pub(super) fn look(&mut self, now: ProcessMemory) {
        let before = std::mem::replace(&mut self.seen, now);
        self.out += now.swapped.saturating_sub(before.swapped);
        let left = before.swapped.saturating_sub(now.swapped);
        let touched = left.min(self.read_ahead);
        self.read_ahead -= touched;
        let faulted = now.faults.saturating_sub(before.faults).saturating_mul(PAGE_BYTES);
        self.back += (left - touched).min(faulted.saturating_sub(touched));
    }

    /// The kernel was told to read back all that is in swap, and has done so or is about to.
    pub(super) fn read_back(&mut self) {
        self.back += self.seen.swapped.saturating_sub(self.read_ahead);
        self.read_ahead = self.seen.swapped;
    }

    /// What moved since the last call: out, and back.
    pub(super) fn take(&mut self) -> (u64, u64) {
        (std::mem::take(&mut self.out), std::mem::take(&mut self.back))
    }

    /// Whether anything moved since then.
    pub(super) fn has_moved(&self) -> bool {
        self.out > 0 || self.back > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEBI: u64 = 1 << 20;

    /// Looks in MiB in swap and MiB faulted in since the start; `read` reads all back in advance.
    fn check(steps: &str, out: u64, back: u64) {
        let mut account = SwapAccount::default();
        for step in steps.split(", ") {
            let Some((swapped, faulted)) = step.split_once('/') else {
                account.read_back();
                continue;
            };
            let number = |text: &str| text.parse::<u64>().expect("a number") * MEBI;
            let faults = number(faulted) / PAGE_BYTES;
            account.look(ProcessMemory { resident: 0, swapped: number(swapped), faults });
        }
        assert_eq!(account.take(), (out * MEBI, back * MEBI), "{steps}");
        assert!(!account.has_moved());
    }

    #[test]
    fn what_is_faulted_in_has_come_back() {
        check("0/10, 200/10", 200, 0);
        check("200/10, 150/60, 0/210", 200, 200);
    }

    #[test]
    fn what_is_given_up_unread_has_not() {
        check("200/10, 0/10", 200, 0);
        check("200/10, 0/40", 200, 30);
    }

    #[test]
    fn what_is_read_in_advance_is_counted_once() {
        check("200/10, read", 200, 200);
        check("200/10, read, 150/60, 0/210", 200, 200);
        check("200/10, read, 150/60, 180/60, read", 230, 230);
    }

    #[test]
    fn what_goes_out_again_comes_back_again() {
        check("100/0, 0/100, 100/100, 0/200", 200, 200);
    }
}
