//! Signal handlers of a task process, and functions to build other handlers.
#![allow(unsafe_code)] // calls sigaction

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicI32, Ordering};

/// Returns a non-blocking pair: the end to read from and the end that handlers write to.
pub fn wake_pair() -> io::Result<(UnixStream, UnixStream)> {
    let (arrivals, wake) = UnixStream::pair()?;
    arrivals.set_nonblocking(true)?;
    wake.set_nonblocking(true)?;
    Ok((arrivals, wake))
}

/// Lets SIGHUP end this process and its children, even if it was ignored (`nohup`). The kernel sends SIGHUP
/// to the stopped processes that a dying task leaves in its process group; otherwise they would remain.
pub fn heed_hang_ups() -> io::Result<()> {
    // SAFETY: all zeroes is a valid sigaction: the default action, an empty mask and no flags.
    let action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: the action is initialised; the pointer for the old action may be null.
    if unsafe { libc::sigaction(libc::SIGHUP, &action, std::ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Lets SIGTERM end this process with status 143, as a shell reports it, for callers that see only exit
/// statuses.
pub fn exit_when_told() -> io::Result<()> {
    extern "C" fn on_told(signal: libc::c_int) {
        // SAFETY: _exit is async-signal-safe.
        unsafe { libc::_exit(128 + signal) };
    }
    install_handler(libc::SIGTERM, on_told)
}

/// Ignores SIGTERM by a handler; the process ends with its worker or by its message. A batch system that
/// revokes an allocation sends SIGTERM to all its processes, and the work must be saved first. Programs
/// executed from here are unaffected, since handlers do not survive exec.
pub fn outlive_terminate() -> io::Result<()> {
    install_handler(libc::SIGTERM, on_terminate)
}

extern "C" fn on_terminate(_: libc::c_int) {}

/// Installs a handler, which must be async-signal-safe.
pub fn install_handler(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) -> io::Result<()> {
    // SAFETY: all zeroes is a valid sigaction: an empty mask and no flags.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = handler as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the action is initialised, and its handler is async-signal-safe.
    if unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Wakes the reader of the other end from a handler: an atomic and write only.
pub fn pass_on(wake: &AtomicI32, byte: u8) {
    let wake: RawFd = wake.load(Ordering::SeqCst);
    // SAFETY: errno belongs to the interrupted code and is put back; write is async-signal-safe and takes one
    // byte that lives on this stack. If the socket is full it fails, and the reader wakes anyway.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        libc::write(wake, (&raw const byte).cast(), 1);
        *errno = before;
    }
}

/// Returns the usual name of a signal.
pub fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        _ => return None,
    })
}
