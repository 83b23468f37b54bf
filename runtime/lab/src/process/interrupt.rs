//! Owns the wish to stop: Ctrl-C and its relatives set a flag that every long step of an experiment looks at.
//! Nothing is cleaned up here; the error travels up and the guards on its way clean up.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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

    /// A flag that SIGINT, SIGTERM and SIGHUP set instead of ending the process.
    ///
    /// # Errors
    ///
    /// When the system refuses to register the handlers.
    pub fn listen() -> io::Result<Interrupt> {
        let interrupt = Interrupt::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
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
