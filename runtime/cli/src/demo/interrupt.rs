//! Signals that end the demonstration: they are noticed between two steps, so that its processes and files go
//! first.

use std::io::{self, BufRead};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
use napreduce_protocol::printing::print_error;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::flag;

use crate::failure::Failure;
use crate::signals::ending_signals;

/// Base of the exit status of a program that a signal has ended.
const SIGNALLED: u8 = 128;
/// Interval of checks for a signal while waiting for Enter, in nanoseconds.
const LOOK_NANOS: i64 = 100_000_000;

/// The error of a step that a signal has ended.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
struct Interrupted;

/// Records a signal.
pub struct Interrupt {
    /// The number of the signal; 0 before.
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Handles SIGINT, SIGTERM and SIGHUP from now on, unless they are ignored.
    pub fn install() -> Result<Interrupt> {
        let signal = Arc::new(AtomicUsize::new(0));
        for number in ending_signals().context("cannot handle signals")? {
            flag::register_usize(number, Arc::clone(&signal), number.unsigned_abs() as usize)
                .context("cannot handle signals")?;
        }
        Ok(Interrupt { signal })
    }

    /// Fails if a signal has arrived.
    pub fn check(&self) -> Result<()> {
        if self.signal.load(Ordering::Relaxed) == 0 {
            Ok(())
        } else {
            Err(Interrupted.into())
        }
    }

    /// Replaces the error of an interrupted step by the exit status of the program, after printing it.
    pub fn explain(&self, error: anyhow::Error) -> Result<()> {
        if !error.is::<Interrupted>() {
            return Err(error);
        }
        print_error(format_args!("nap demo: {error}"));
        let signal = u8::try_from(self.signal.load(Ordering::Relaxed)).unwrap_or_default();
        Err(Failure::Printed(SIGNALLED.saturating_add(signal)).into())
    }

    /// Waits for a line or the end of standard input. Fails if a signal arrives first.
    pub fn wait_for_enter(&self) -> Result<()> {
        let stdin = io::stdin();
        loop {
            self.check()?;
            let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
            let timeout = Timespec {
                tv_sec: 0,
                tv_nsec: LOOK_NANOS,
            };
            match poll(&mut ready, Some(&timeout)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => {
                    return stdin
                        .lock()
                        .read_line(&mut String::new())
                        .map(drop)
                        .context("cannot read Enter");
                }
                Err(error) => return Err(error).context("cannot wait for Enter"),
            }
        }
    }
}
