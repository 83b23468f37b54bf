//! SIGTSTP to a task process: somebody outside the cluster wants it stopped.
//!
//! Owns the handler, which only passes on that the signal came. The process does not stop by it: it asks its worker, which
//! stops it in the same way as any other attempt that is suspended. Does not own that way (`worker`).
#![allow(unsafe_code)] // The handler itself; nothing else runs in it.

use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicI32, Ordering};

/// Where the handler writes; -1 until there is one.
static WAKE: AtomicI32 = AtomicI32::new(-1);

/// Readable when the signal has come. Once in a process, whose handler stays to its end.
#[derive(Debug)]
pub struct StopSignals {
    arrivals: UnixStream,
}

impl StopSignals {
    /// Installs the handler.
    pub fn install() -> io::Result<StopSignals> {
        let (arrivals, wake) = UnixStream::pair()?;
        arrivals.set_nonblocking(true)?;
        wake.set_nonblocking(true)?;
        WAKE.store(wake.as_raw_fd(), Ordering::SeqCst);
        // The handler may run as long as the process does.
        std::mem::forget(wake);
        let handler: extern "C" fn(libc::c_int) = on_signal;
        // SAFETY: all zeroes is a valid sigaction: an empty mask and no flags.
        let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        action.sa_sigaction = handler as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        // SAFETY: the action is initialised and its handler does only what is allowed in one.
        if unsafe { libc::sigaction(libc::SIGTSTP, &action, std::ptr::null_mut()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(StopSignals { arrivals })
    }

    /// Whether one has come since the last call.
    pub fn take(&self) -> bool {
        let mut bytes = [0; 64];
        // Would block: none has come.
        (&self.arrivals).read(&mut bytes).is_ok_and(|count| count > 0)
    }
}

impl AsFd for StopSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.arrivals.as_fd()
    }
}

/// Passes it on: an atomic and write only.
extern "C" fn on_signal(_: libc::c_int) {
    let wake = WAKE.load(Ordering::SeqCst);
    let byte = 0_u8;
    // SAFETY: errno belongs to the interrupted code and is put back; write is async-signal-safe and takes one byte that
    // lives on this stack. When the socket is full it fails, and what is in it says enough.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        libc::write(wake, (&raw const byte).cast(), 1);
        *errno = before;
    }
}
