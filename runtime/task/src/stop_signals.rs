//! The signal that asks to stop a task process (SIGTSTP) or end a guest (SIGTERM).
//!
//! The handler only forwards it: a task process asks its worker for a suspension, and a guest saves its work
//! first.

use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::process::Signal;

use crate::signals::{install_handler, pass_on, wake_pair};

/// The descriptor that the handler writes to; -1 before the installation.
static WAKE: AtomicI32 = AtomicI32::new(-1);

/// Readable after the signal has arrived. One per process; its handler stays installed.
#[derive(Debug)]
pub struct StopSignals {
    arrivals: UnixStream,
}

impl StopSignals {
    /// Installs a handler for this signal.
    pub fn install(signal: Signal) -> io::Result<StopSignals> {
        let (arrivals, wake) = wake_pair()?;
        WAKE.store(wake.as_raw_fd(), Ordering::SeqCst);
        // The handler may run until the process ends.
        std::mem::forget(wake);
        install_handler(signal.as_raw(), on_signal)?;
        Ok(StopSignals { arrivals })
    }

    /// Returns whether the signal has arrived since the last call.
    pub fn take(&self) -> bool {
        let mut bytes = [0; 64];
        // Would block: no signal has arrived.
        (&self.arrivals)
            .read(&mut bytes)
            .is_ok_and(|count| count > 0)
    }
}

impl AsFd for StopSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.arrivals.as_fd()
    }
}

extern "C" fn on_signal(_: libc::c_int) {
    pass_on(&WAKE, 0);
}
