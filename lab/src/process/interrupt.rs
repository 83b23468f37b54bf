//! Owns the wish to stop: Ctrl-C and its relatives set a flag that every long step of an experiment looks at.
//! Nothing is cleaned up here; the error travels up and the guards on its way clean up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, io};

use datagen::Watch;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// A flag that signals set. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    /// The signal that arrived, 0 for none.
    signal: Arc<AtomicUsize>,
    /// The same wish in the form that generators and validators look at.
    watch: Watch,
}

/// The experiment was asked to end.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("interrupted by signal {signal}")]
pub struct InterruptError {
    /// The signal's number.
    pub signal: u8,
}

impl Interrupt {
    /// A flag that nothing sets.
    pub fn never() -> Interrupt {
        Interrupt::default()
    }

    /// A flag that SIGINT, SIGTERM and SIGHUP set instead of ending the process. Under `nohup` SIGHUP stays
    /// ignored.
    ///
    /// # Errors
    ///
    /// When the system refuses to register the handlers.
    pub fn listen() -> io::Result<Interrupt> {
        let interrupt = Interrupt::default();
        let hangup = if ignored(SIGHUP) { None } else { Some(SIGHUP) };
        for signal in [SIGINT, SIGTERM].into_iter().chain(hangup) {
            let number = usize::try_from(signal).map_err(io::Error::other)?;
            flag::register_usize(signal, Arc::clone(&interrupt.signal), number)?;
            flag::register(signal, interrupt.watch.stop_flag())?;
        }
        Ok(interrupt)
    }

    /// An error once a signal arrived.
    ///
    /// # Errors
    ///
    /// [`InterruptError`] names the signal.
    pub fn check(&self) -> Result<(), InterruptError> {
        match self.signal.load(Ordering::Relaxed) {
            0 => Ok(()),
            signal => Err(InterruptError { signal: u8::try_from(signal).unwrap_or(u8::MAX) }),
        }
    }

    /// A watch for a call into datagen that ends early on the same signals.
    pub fn watch(&self) -> Watch {
        self.watch.clone()
    }
}

/// Whether this process was started with `signal` ignored; no where the kernel does not tell.
fn ignored(signal: i32) -> bool {
    fs::read_to_string("/proc/self/status").is_ok_and(|status| ignored_in(&status, signal))
}

/// The kernel prints the ignored signals as a hexadecimal mask, signal 1 in the lowest bit.
fn ignored_in(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_bits_of_a_mask() {
        let status = "Name:\tnap\nSigBlk:\tffffffffffffffff\nSigIgn:\t0000000000000001\n";
        assert!(ignored_in(status, SIGHUP));
        assert!(!ignored_in(status, SIGINT));
        assert!(!ignored_in("Name:\tnap\n", SIGHUP));
    }
}
