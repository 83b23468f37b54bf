//! Moves the memory of a stopped process to swap and back, faster than the kernel does under pressure.
//!
//! The kernel permits this for other processes only with CAP_SYS_NICE; a process may always advise about
//! itself.
#![allow(unsafe_code)] // calls process_madvise with addresses of another process

use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, io};

use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};

/// Bytes per request; cancellation is checked between requests.
const PIECE_BYTES: usize = 16 << 20;

/// The advice to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paging {
    /// To swap.
    Out,
    /// Back from swap.
    In,
}

impl Paging {
    fn advice(self) -> libc::c_int {
        match self {
            Paging::Out => libc::MADV_PAGEOUT,
            Paging::In => libc::MADV_WILLNEED,
        }
    }
}

/// A process whose memory can be advised about until it is reaped.
#[derive(Debug)]
pub struct PagedProcess {
    process: Pid,
    pidfd: OwnedFd,
}

impl PagedProcess {
    /// Opens a child of this process that is not reaped, or this process itself.
    pub fn open(process: Pid) -> io::Result<PagedProcess> {
        Ok(PagedProcess {
            process,
            pidfd: pidfd_open(process, PidfdFlags::empty())?,
        })
    }

    /// Checks whether the kernel permits advice about that process.
    pub fn is_permitted(&self) -> io::Result<()> {
        advise(&self.pidfd, &[], Paging::In).map(drop)
    }

    /// Advises about all private memory until `cancelled`; returns the number of bytes accepted by the
    /// kernel.
    pub fn advise(&self, paging: Paging, cancelled: &AtomicBool) -> io::Result<u64> {
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.process.as_raw_nonzero()))?;
        let mut advised = 0;
        for range in maps.lines().filter_map(own_memory) {
            let mut start = range.start;
            while start < range.end {
                if cancelled.load(Ordering::Relaxed) {
                    return Ok(advised);
                }
                let length = (range.end - start).min(PIECE_BYTES);
                let piece = libc::iovec {
                    iov_base: start as *mut libc::c_void,
                    iov_len: length,
                };
                match advise(&self.pidfd, &[piece], paging) {
                    Ok(bytes) => advised += bytes,
                    // Pages that cannot be moved, or an unmapped range.
                    Err(error) if is_of_the_range(&error) => {}
                    Err(error) => return Err(error),
                }
                start += length;
            }
        }
        Ok(advised)
    }
}

fn is_of_the_range(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EINVAL | libc::ENOMEM | libc::EAGAIN | libc::EINTR)
    )
}

/// Pages out this process; pages rejected by the kernel stay in memory.
pub fn page_out_self() {
    if let Ok(own) = PagedProcess::open(getpid()) {
        // Optional: the kernel pages out later under pressure.
        let _ = own.advise(Paging::Out, &AtomicBool::new(false));
    }
}

fn advise(pidfd: &OwnedFd, pieces: &[libc::iovec], paging: Paging) -> io::Result<u64> {
    let pidfd: BorrowedFd<'_> = std::os::fd::AsFd::as_fd(pidfd);
    // SAFETY: the pieces are addresses of the other process, which the kernel only gives advice about:
    // neither changes the contents of its memory. The list itself lives until the call returns.
    let advised = unsafe {
        libc::syscall(
            libc::SYS_process_madvise,
            pidfd.as_raw_fd(),
            pieces.as_ptr(),
            pieces.len(),
            paging.advice(),
            0,
        )
    };
    u64::try_from(advised).map_err(|_| io::Error::last_os_error())
}

/// Parses a line of `/proc/PID/maps`; returns the range if it is private, writable and anonymous.
fn own_memory(line: &str) -> Option<Range<usize>> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let rights = fields.next()?;
    let inode = fields.nth(2)?;
    let name = fields.next().unwrap_or_default();
    let is_kernel_mapping = name.starts_with("[v");
    if !rights.starts_with("rw") || !rights.ends_with('p') || inode != "0" || is_kernel_mapping {
        return None;
    }
    Some(usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anonymous_memory_is_parsed() {
        let range = |line| own_memory(line);
        assert_eq!(
            range("7f00-8000 rw-p 00000000 00:00 0  [heap]"),
            Some(0x7f00..0x8000)
        );
        assert_eq!(
            range("7f00-8000 rw-p 00000000 00:00 0"),
            Some(0x7f00..0x8000)
        );
        assert_eq!(range("7f00-8000 r--p 00000000 00:00 0"), None);
        assert_eq!(range("7f00-8000 rw-s 00000000 00:00 0"), None);
        assert_eq!(range("7f00-8000 rw-p 00000000 fe:01 77  /lib/x.so"), None);
        assert_eq!(range("7f00-8000 rw-p 00000000 00:00 0  [vvar]"), None);
        assert_eq!(range("nonsense"), None);
    }

    #[test]
    fn paging_another_process_requires_privilege() {
        use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
        let mut other = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .expect("sleep");
        let paged = PagedProcess::open(Pid::from_child(&other)).expect("a pidfd");
        let mut sets = capabilities(None).expect("the capabilities");
        let privileged = sets.effective.contains(CapabilitySet::SYS_NICE);
        assert_eq!(paged.is_permitted().is_ok(), privileged);
        if privileged {
            assert!(paged.advise(Paging::Out, &AtomicBool::new(false)).is_ok());
            // Capabilities belong to a thread.
            sets.effective.remove(CapabilitySet::SYS_NICE);
            sets.permitted.remove(CapabilitySet::SYS_NICE);
            let without = std::thread::spawn(move || {
                set_capabilities(None, sets).expect("capabilities can always be dropped");
                page_out_self();
                paged.is_permitted().map_err(|error| error.kind())
            });
            assert_eq!(
                without.join().expect("no panic"),
                Err(io::ErrorKind::PermissionDenied)
            );
        }
        other.kill().expect("killed");
        other.wait().expect("reaped");
    }

    #[test]
    fn own_memory_is_paged_without_privilege() {
        let memory = vec![7_u8; 32 << 20];
        let own = PagedProcess::open(getpid()).expect("a pidfd");
        own.is_permitted()
            .expect("always permitted for this process");
        let advised = own
            .advise(Paging::Out, &AtomicBool::new(false))
            .expect("advice");
        assert!(advised >= memory.len() as u64, "{advised}");
        assert!(memory.iter().all(|byte| *byte == 7));
        assert_eq!(
            own.advise(Paging::In, &AtomicBool::new(true))
                .expect("advice"),
            0
        );
    }
}
