//! The signal by which somebody outside wants a task process stopped (SIGTSTP), or a guest ended (SIGTERM).
//!
//! Owns the handler, which only passes on that the signal came. A task process does not stop by it: it asks
//! its worker, which stops it in the same way as any other attempt that is suspended. Nor does a guest end by
//! it, which saves its work first. Does not own these ways (`worker`, `guest`).
#![allow(unsafe_code)] // The handler itself; nothing else runs in it.

use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::process::Signal;

use super::signals::install_handler;

/// Where the handler writes; -1 until there is one.
static WAKE: AtomicI32 = AtomicI32::new(-1);

/// Readable when the signal has come. Once in a process, whose handler stays to its end.
#[derive(Debug)]
pub struct StopSignals {
    arrivals: UnixStream,
}

impl StopSignals {
    /// Installs the handler of the one signal.
    pub fn install(signal: Signal) -> io::Result<StopSignals> {
        let (arrivals, wake) = UnixStream::pair()?;
        arrivals.set_nonblocking(true)?;
        wake.set_nonblocking(true)?;
        WAKE.store(wake.as_raw_fd(), Ordering::SeqCst);
        // The handler may run as long as the process does.
        std::mem::forget(wake);
        install_handler(signal.as_raw(), on_signal)?;
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
    // SAFETY: errno belongs to the interrupted code and is put back; write is async-signal-safe and takes one
    // byte that lives on this stack. When the socket is full it fails, and what is in it says enough.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        libc::write(wake, (&raw const byte).cast(), 1);
        *errno = before;
    }
}
