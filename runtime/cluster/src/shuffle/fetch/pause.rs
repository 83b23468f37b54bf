//! The pause of all fetching threads around a suspension.

use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Closing a connection takes far less. Only connecting may take longer, and is not worth waiting for.
const PATIENCE: Duration = Duration::from_millis(100);

/// Shared by the threads.
#[derive(Debug)]
pub(super) struct Pause {
    threads: u64,
    on: AtomicBool,
    /// How many have begun.
    begun: AtomicU64,
    threads_now: Mutex<Threads>,
    rested: Condvar,
}

#[derive(Debug, Default)]
struct Threads {
    /// Without a connection, waiting for something to do.
    at_rest: u64,
    /// Sockets in use, each with a number of its own.
    sockets: Vec<(u64, TcpStream)>,
    numbers: u64,
}

impl Pause {
    pub(super) fn of(threads: u64) -> Pause {
        let (threads_now, rested) = (Mutex::default(), Condvar::new());
        Pause { threads, on: AtomicBool::new(false), begun: AtomicU64::new(0), threads_now, rested }
    }

    pub(super) fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// How many have begun so far: when that has changed, a connection that was open meanwhile may have been
    /// closed by this process itself, though it is noticed only after the pause.
    pub(super) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Acquire)
    }

    /// Nothing is left half-changed under this lock.
    fn threads(&self) -> MutexGuard<'_, Threads> {
        self.threads_now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins it: whoever reads or writes finds the connection closed.
    pub(super) fn begin(&self) {
        // In this order: whoever has seen the new number sees that it is on, unless it is over.
        self.on.store(true, Ordering::Relaxed);
        self.begun.fetch_add(1, Ordering::Release);
        for (_, socket) in &self.threads().sockets {
            // One that is closed already is what is wanted.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    pub(super) fn end(&self) {
        self.on.store(false, Ordering::Relaxed);
    }

    pub(super) fn wait_until_at_rest(&self) {
        let all = self.threads;
        let waited = self.rested.wait_timeout_while(self.threads(), PATIENCE, |now| now.at_rest < all);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// The calling thread is at rest until the result is dropped.
    pub(super) fn rest(&self) -> AtRest<'_> {
        self.threads().at_rest += 1;
        self.rested.notify_all();
        AtRest { pause: self }
    }

    /// A connection is in use until the result is dropped. One that begins during a pause is closed at once.
    pub(super) fn attach(&self, socket: &TcpStream) -> std::io::Result<Attached<'_>> {
        let socket = socket.try_clone()?;
        let mut threads = self.threads();
        if self.is_on() {
            socket.shutdown(Shutdown::Both)?;
        }
        threads.numbers += 1;
        let number = threads.numbers;
        threads.sockets.push((number, socket));
        Ok(Attached { pause: self, number })
    }
}

/// A thread that waits for something to do.
pub(super) struct AtRest<'a> {
    pause: &'a Pause,
}

impl Drop for AtRest<'_> {
    fn drop(&mut self) {
        self.pause.threads().at_rest -= 1;
    }
}

/// A socket that a pause closes.
pub(super) struct Attached<'a> {
    pause: &'a Pause,
    number: u64,
}

impl Drop for Attached<'_> {
    fn drop(&mut self) {
        self.pause.threads().sockets.retain(|(number, _)| *number != self.number);
    }
}
