//! Signals that ask this program to stand still and to go on: SIGTSTP, which is what Ctrl-Z sends,
//! and SIGCONT.
//!
//! Owns their handlers while a job runs, and the stop itself. The handlers only pass on which signal came:
//! tasks are in process groups of their own, which a terminal stops nothing of, so that they are suspended
//! first. Does not own that (`coordinator`). Outside of a job the dispositions are as they were.
#![allow(unsafe_code)] // Signal dispositions can be changed, and a signal be sent to a thread, through the C library only.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::atomic::{AtomicI32, Ordering};

use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;

use super::signals::{current_action, install_handler};

/// Where the handler writes; -1 while no job runs.
static WAKE: AtomicI32 = AtomicI32::new(-1);

/// What somebody outside wants this program to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PauseSignal {
    /// To stand still until it is told otherwise.
    Stop,
    /// To go on.
    Continue,
}

/// The handlers, from [`Pauses::install`] until it is dropped. One at a time in a process.
pub struct Pauses {
    arrivals: UnixStream,
    /// Kept open for the handler.
    _wake: StdUnixStream,
    replaced: Vec<(libc::c_int, libc::sigaction)>,
}

impl Pauses {
    /// Installs the handlers; where the program was told to ignore stops, it does.
    pub fn install() -> io::Result<Pauses> {
        let (arrivals, wake) = StdUnixStream::pair()?;
        arrivals.set_nonblocking(true)?;
        wake.set_nonblocking(true)?;
        let arrivals = UnixStream::from_std(arrivals)?;
        WAKE.store(wake.as_raw_fd(), Ordering::SeqCst);
        // From here on the drop of this value undoes what was done.
        let mut pauses = Pauses { arrivals, _wake: wake, replaced: Vec::new() };
        for signal in [libc::SIGTSTP, libc::SIGCONT] {
            let before = current_action(signal)?;
            if before.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            install_handler(signal, on_signal)?;
            pauses.replaced.push((signal, before));
        }
        Ok(pauses)
    }

    /// Waits for the next signal.
    pub async fn arrival(&mut self) -> io::Result<PauseSignal> {
        let mut signal = [0];
        self.arrivals.read_exact(&mut signal).await?;
        Ok(PauseSignal::of(signal[0]))
    }
}

impl Pauses {
    /// The last of the signals that have come and were not awaited.
    pub fn arrived(&self) -> Option<PauseSignal> {
        let (mut signals, mut last) = ([0; 64], None);
        while let Ok(count @ 1..) = self.arrivals.try_read(&mut signals) {
            last = signals[..count].last().map(|signal| PauseSignal::of(*signal));
        }
        last
    }
}

impl PauseSignal {
    fn of(signal: u8) -> PauseSignal {
        if i32::from(signal) == libc::SIGTSTP { PauseSignal::Stop } else { PauseSignal::Continue }
    }
}

impl Drop for Pauses {
    fn drop(&mut self) {
        for (signal, before) in &self.replaced {
            // SAFETY: `before` is what sigaction itself returned for this signal; no old value is asked for.
            unsafe { libc::sigaction(*signal, before, std::ptr::null_mut()) };
        }
        WAKE.store(-1, Ordering::SeqCst);
    }
}

/// Stops this process with all its threads; returns when somebody has it continued.
pub fn stop_this_process() {
    // SAFETY: raise sends to the calling thread, which takes it before it returns; SIGSTOP runs no handler.
    // It cannot fail with the number of a signal that there is.
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// Passes it on: an atomic and write only.
extern "C" fn on_signal(signal: libc::c_int) {
    let wake = WAKE.load(Ordering::SeqCst);
    let byte = signal as u8;
    // SAFETY: errno belongs to the interrupted code and is put back; write is async-signal-safe and takes one
    // byte that lives on this stack. When the socket is full it fails, and so many signals were not taken in
    // that one more says nothing.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        libc::write(wake, (&raw const byte).cast(), 1);
        *errno = before;
    }
}
