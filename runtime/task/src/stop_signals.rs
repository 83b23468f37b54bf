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
        let (arrivals, wake) = wake_pair()?;
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

extern "C" fn on_signal(_: libc::c_int) {
    pass_on(&WAKE, 0);
}
