//! Signals that stop and continue this program: SIGTSTP, sent by Ctrl-Z, and SIGCONT.
//!
//! Handlers are installed while a job runs and only forward the signal. Tasks are in their own process
//! groups, which a terminal does not stop, so they are suspended before the program stops.
#![allow(unsafe_code)] // calls raise

use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicI32, Ordering};

use napreduce_task::{pass_on, wake_pair};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;

use super::interrupts::Handlers;

/// The descriptor that the handler writes to; -1 while no job runs.
static WAKE: AtomicI32 = AtomicI32::new(-1);

/// A request to stop or continue this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PauseSignal {
    Stop,
    Continue,
}

/// The handlers, from [`Pauses::install`] until drop. Only one at a time in a process.
pub struct Pauses {
    /// Dropped first, before the read end.
    _handlers: Handlers,
    arrivals: UnixStream,
}

impl Pauses {
    /// Installs the handlers; ignored signals stay ignored.
    pub fn install() -> io::Result<Pauses> {
        let (arrivals, wake) = wake_pair()?;
        let arrivals = UnixStream::from_std(arrivals)?;
        WAKE.store(wake.as_raw_fd(), Ordering::SeqCst);
        let mut handlers = Handlers::new(&WAKE, wake);
        for signal in [libc::SIGTSTP, libc::SIGCONT] {
            handlers.install(signal, on_signal, true)?;
        }
        Ok(Pauses {
            _handlers: handlers,
            arrivals,
        })
    }

    /// Waits for the next signal.
    pub async fn arrival(&mut self) -> io::Result<PauseSignal> {
        let mut signal = [0];
        self.arrivals.read_exact(&mut signal).await?;
        Ok(PauseSignal::from_number(signal[0]))
    }

    /// Returns the last signal that has arrived and was not awaited.
    pub fn arrived(&self) -> Option<PauseSignal> {
        let mut signals = [0; 64];
        let mut last = None;
        while let Ok(count @ 1..) = self.arrivals.try_read(&mut signals) {
            last = signals[..count]
                .last()
                .map(|signal| PauseSignal::from_number(*signal));
        }
        last
    }
}

impl PauseSignal {
    fn from_number(signal: u8) -> PauseSignal {
        if i32::from(signal) == libc::SIGTSTP {
            PauseSignal::Stop
        } else {
            PauseSignal::Continue
        }
    }
}

/// Stops all threads of this process; returns when it is continued.
pub fn stop_this_process() {
    // SAFETY: raise sends to the calling thread, which takes it before it returns; SIGSTOP runs no handler.
    // It cannot fail with a valid signal number.
    unsafe { libc::raise(libc::SIGSTOP) };
}

extern "C" fn on_signal(signal: libc::c_int) {
    // If the socket is full, one more signal adds nothing.
    pass_on(&WAKE, signal as u8);
}
