//! Requests a short time slice for a thread, so that it runs soon after it is woken. Its share of the
//! processor does not grow.
#![allow(unsafe_code)] // makes system calls that libc does not wrap

use std::mem;

/// The shortest slice that the kernel grants.
const SLICE_NANOS: u64 = 100_000;

/// Requests a short time slice for the calling thread, so that it runs soon after it is woken while tasks hold
/// all processors. Otherwise it waits for the end of the current slice, some milliseconds. Among threads with
/// an equal right to run, Linux 6.12 or later prefers the shorter slice (EEVDF, `sched_setattr(2)`). Threads
/// and processes that it starts have normal slices.
///
/// Has no effect on an older kernel, or in a sandbox that forbids the call.
pub fn run_soon_when_woken() {
    // SAFETY: all zero is a valid value of each of its numbers.
    let mut wish: libc::sched_attr = unsafe { mem::zeroed() };
    let size = size_of::<libc::sched_attr>();
    // SAFETY: the kernel writes as many bytes as the value has.
    let known = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut wish, size, 0) };
    // Another policy, set for example by `chrt`, is intended.
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

    /// Returns the slice of the calling thread in nanoseconds, if the kernel reports it.
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
        let mut numbers = release
            .split(['.', '-'])
            .map_while(|number| number.parse::<u32>().ok());
        let grants = (numbers.next(), numbers.next()) >= (Some(6), Some(12));
        match (grants, usual) {
            (true, Some(_)) => assert_eq!(short, Some(SLICE_NANOS)),
            _ => println!("skipped: Linux {release} grants no slices, or shows none"),
        }
        assert_eq!(started, usual);
        assert_eq!(slice(), usual, "other threads keep theirs");
    }
}
