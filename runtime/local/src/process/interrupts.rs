//! Signals that ask this program to end: SIGINT, SIGTERM and SIGHUP.
//!
//! While a job runs, the first signal is an awaitable event and a second one ends the program at once.
//! Otherwise the dispositions are unchanged, so a driver between two jobs dies as any program does. Tokio's
//! handlers are not used because they stay installed.
#![allow(unsafe_code)] // calls sigaction

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use napreduce_task::{install_handler, pass_on, wake_pair};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
#[cfg(feature = "simulated")]
use tokio::sync::mpsc::UnboundedReceiver;

const HANDLED: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Write end for the handler; -1 while no job runs.
static WAKE: AtomicI32 = AtomicI32::new(-1);
/// Whether a signal has arrived since the handlers were installed.
static SEEN: AtomicBool = AtomicBool::new(false);

/// The signals to a daemon or a driver. Those of this process arrive from [`Interrupts::install`] until drop, at one
/// place at a time.
pub struct Interrupts {
    source: Source,
}

enum Source {
    Handlers {
        /// Dropped first, before the read end.
        _handlers: Handlers,
        arrivals: UnixStream,
    },
    #[cfg(feature = "simulated")]
    Channel(UnboundedReceiver<i32>),
}

impl Interrupts {
    /// Installs the handlers; an ignored SIGHUP stays ignored.
    pub fn install() -> io::Result<Interrupts> {
        let (arrivals, wake) = wake_pair()?;
        let arrivals = UnixStream::from_std(arrivals)?;
        let free = WAKE.compare_exchange(-1, wake.as_raw_fd(), Ordering::SeqCst, Ordering::SeqCst);
        if free.is_err() {
            return Err(io::Error::other("another job of this program is running"));
        }
        SEEN.store(false, Ordering::SeqCst);
        let mut handlers = Handlers::new(&WAKE, wake);
        for signal in HANDLED {
            handlers.install(signal, on_signal, signal == libc::SIGHUP)?;
        }
        Ok(Interrupts {
            source: Source::Handlers {
                _handlers: handlers,
                arrivals,
            },
        })
    }

    /// Returns the signals that a simulation sends through a channel.
    #[cfg(feature = "simulated")]
    pub fn of_channel(signals: UnboundedReceiver<i32>) -> Interrupts {
        Interrupts {
            source: Source::Channel(signals),
        }
    }

    /// Waits for the next signal and returns its number; of the signals to this process only the first one arrives.
    pub async fn arrival(&mut self) -> io::Result<i32> {
        match &mut self.source {
            Source::Handlers { arrivals, .. } => {
                let mut signal = [0];
                arrivals.read_exact(&mut signal).await?;
                Ok(i32::from(signal[0]))
            }
            #[cfg(feature = "simulated")]
            Source::Channel(signals) => match signals.recv().await {
                Some(signal) => Ok(signal),
                None => std::future::pending().await,
            },
        }
    }

    /// Returns the next signal, if it has arrived and was not awaited.
    pub fn arrived(&mut self) -> Option<i32> {
        match &mut self.source {
            Source::Handlers { arrivals, .. } => {
                let mut signal = [0];
                // Would block: no signal has arrived.
                match arrivals.try_read(&mut signal) {
                    Ok(1) => Some(i32::from(signal[0])),
                    _ => None,
                }
            }
            #[cfg(feature = "simulated")]
            Source::Channel(signals) => signals.try_recv().ok(),
        }
    }
}

/// Signal handlers; drop restores the previous ones.
pub(super) struct Handlers {
    /// The location of the write end for handlers.
    wake: &'static AtomicI32,
    /// The write end, kept open.
    _end: StdUnixStream,
    replaced: Vec<(libc::c_int, libc::sigaction)>,
}

impl Handlers {
    /// Creates an empty set, whose handlers write to `end` through `wake`.
    pub(super) fn new(wake: &'static AtomicI32, end: StdUnixStream) -> Handlers {
        Handlers {
            wake,
            _end: end,
            replaced: Vec::new(),
        }
    }

    /// Installs a handler, optionally leaving ignored signals ignored.
    pub(super) fn install(
        &mut self,
        signal: libc::c_int,
        handler: extern "C" fn(libc::c_int),
        unless_ignored: bool,
    ) -> io::Result<()> {
        if unless_ignored && is_ignored(signal)? {
            return Ok(());
        }
        let before = current_action(signal)?;
        install_handler(signal, handler)?;
        self.replaced.push((signal, before));
        Ok(())
    }
}

impl Drop for Handlers {
    fn drop(&mut self) {
        for (signal, before) in &self.replaced {
            // SAFETY: `before` was returned by sigaction for this signal; the pointer for the old action may
            // be null.
            unsafe { libc::sigaction(*signal, before, std::ptr::null_mut()) };
        }
        self.wake.store(-1, Ordering::SeqCst);
    }
}

/// Makes a write beyond the limit on file sizes (`ulimit -f`) fail with EFBIG, where SIGXFSZ would end this process
/// without a word. Programs that it starts have the default again. An ignored signal stays ignored.
///
/// # Errors
/// Fails if the handler cannot be installed.
pub fn survive_file_size_limit() -> io::Result<()> {
    if is_ignored(libc::SIGXFSZ)? {
        return Ok(());
    }
    install_handler(libc::SIGXFSZ, on_file_size_limit)
}

extern "C" fn on_file_size_limit(_signal: libc::c_int) {}

/// Lets SIGINT end this program, unless a handler is installed, even if the program that started it ignores SIGINT.
///
/// # Errors
/// Fails if the kernel refuses to change the action.
pub fn end_at_interrupt() -> io::Result<()> {
    if !is_ignored(libc::SIGINT)? {
        return Ok(());
    }
    let mut action = current_action(libc::SIGINT)?;
    action.sa_sigaction = libc::SIG_DFL;
    // SAFETY: the action was returned by sigaction, with the default in place of "ignore"; the pointer for the old action
    // may be null.
    if unsafe { libc::sigaction(libc::SIGINT, &action, std::ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Returns whether this program ignores a signal. One that is ignored from the start must stay ignored: its user
/// asked for that, for example by `nohup`, which ignores SIGHUP, or by `&` in a script, which ignores SIGINT.
pub fn is_ignored(signal: i32) -> io::Result<bool> {
    Ok(current_action(signal)?.sa_sigaction == libc::SIG_IGN)
}

fn current_action(signal: libc::c_int) -> io::Result<libc::sigaction> {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: with a null new action, sigaction only reads; the out pointer is valid for one sigaction.
    if unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: sigaction returned 0, so the value is initialized.
    Ok(unsafe { action.assume_init() })
}

/// Forwards the first signal and ends the process at the second: atomics, write and _exit only.
extern "C" fn on_signal(signal: libc::c_int) {
    if SEEN.swap(true, Ordering::SeqCst) {
        // SAFETY: _exit is async-signal-safe. The children die with the thread that forked them.
        unsafe { libc::_exit(128 + signal) };
    }
    // The socket is empty, since only the first signal reaches this line.
    pass_on(&WAKE, signal as u8);
}
