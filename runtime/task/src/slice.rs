//! Requests a short time slice for a thread, so that it runs soon after it is woken. Its share of the
//! processor does not grow.
#![allow(unsafe_code)] // The C library has no functions for these calls.

use std::mem;

/// The shortest slice that the kernel grants.
const SLICE_NANOS: u64 = 100_000;

/// Asks the kernel to let the calling thread run soon when it is woken while tasks hold all processors.
/// Without that it waits for the end of the slice that has begun, some milliseconds. Of threads with an equal
/// right to run, Linux from 6.12 on takes the one with the shorter slice first (EEVDF, `sched_setattr(2)`).
/// What the thread starts has usual slices.
///
/// An older kernel, or a sandbox that refuses the call, leaves everything as it was.
pub fn run_soon_when_woken() {
    // SAFETY: all zero is a valid value of each of its numbers.
    let mut wish: libc::sched_attr = unsafe { mem::zeroed() };
    let size = size_of::<libc::sched_attr>();
    // SAFETY: the kernel writes as many bytes as the value has.
    let known = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut wish, size, 0) };
    // Whoever started this with another policy, as `chrt` does, meant it.
    if known == 0 && wish.sched_policy == libc::SCHED_OTHER.unsigned_abs() {
        wish.sched_runtime = SLICE_NANOS;
        wish.sched_flags |= u64::from(libc::SCHED_FLAG_RESET_ON_FORK.unsigned_abs());
        // SAFETY: the kernel reads the value, and changes this thread's slices alone.
        let _ = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const wish, 0) };
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, thread};

    use super::*;

    /// The slice of the calling thread in nanoseconds; `None` where the kernel does not say.
    fn slice() -> Option<u64> {
        let text = fs::read_to_string("/proc/thread-self/sched").ok()?;
        let line = text.lines().find(|line| line.starts_with("se.slice"))?;
        line.rsplit(' ').next()?.parse().ok()
    }

    #[test]
    fn short_slice_applies_to_its_thread_only() {
        let usual = slice();
        let wished = || {
            run_soon_when_woken();
            (slice(), thread::spawn(slice).join().expect("a thread"))
        };
        let (short, started) = thread::spawn(wished).join().expect("a thread");
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("a kernel");
        let mut numbers = release.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
        let grants = (numbers.next(), numbers.next()) >= (Some(6), Some(12));
        match (grants, usual) {
            (true, Some(_)) => assert_eq!(short, Some(SLICE_NANOS)),
            _ => println!("skipped: Linux {release} grants no slices, or shows none"),
        }
        assert_eq!(started, usual);
        assert_eq!(slice(), usual, "other threads keep theirs");
    }
}
