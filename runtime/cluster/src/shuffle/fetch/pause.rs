//! The pause of all fetching threads around a suspension.

use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use napreduce_protocol::lock;

/// Maximum wait for the threads to rest. Closing a connection takes far less; a connecting thread may take
/// longer and is not waited for.
const PATIENCE: Duration = Duration::from_millis(100);

/// Shared by the threads.
#[derive(Debug)]
pub(super) struct Pause {
    threads: u64,
    on: AtomicBool,
    /// Pauses so far.
    begun: AtomicU64,
    state: Mutex<Threads>,
    rested: Condvar,
}

#[derive(Debug, Default)]
struct Threads {
    /// Threads without a connection that wait for work.
    resting: u64,
    /// Sockets in use, by number.
    sockets: Vec<(u64, TcpStream)>,
    last_number: u64,
}

impl Pause {
    pub(super) fn new(threads: u64) -> Pause {
        let state = Mutex::default();
        let rested = Condvar::new();
        Pause {
            threads,
            on: AtomicBool::new(false),
            begun: AtomicU64::new(0),
            state,
            rested,
        }
    }

    pub(super) fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Returns the number of pauses so far. If it has changed, this process may have closed a connection that
    /// was open meanwhile, even if the error is noticed only after the pause.
    pub(super) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Acquire)
    }

    /// Locks the state; no panic can leave it half-changed.
    fn threads(&self) -> MutexGuard<'_, Threads> {
        lock(&self.state)
    }

    /// Begins a pause: closes all connections in use.
    pub(super) fn begin(&self) {
        // In this order: a thread that reads the new number also sees the pause, unless it is over.
        self.on.store(true, Ordering::Relaxed);
        self.begun.fetch_add(1, Ordering::Release);
        for (_, socket) in &self.threads().sockets {
            // Fails only for a closed connection.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    pub(super) fn end(&self) {
        self.on.store(false, Ordering::Relaxed);
    }

    pub(super) fn wait_until_resting(&self) {
        let all = self.threads;
        let waited = self
            .rested
            .wait_timeout_while(self.threads(), PATIENCE, |now| now.resting < all);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Counts the calling thread as resting until the guard is dropped.
    pub(super) fn rest(&self) -> RestGuard<'_> {
        self.threads().resting += 1;
        self.rested.notify_all();
        RestGuard { pause: self }
    }

    /// Registers a connection until the guard is dropped. A connection registered during a pause is closed at
    /// once.
    pub(super) fn attach(&self, socket: &TcpStream) -> std::io::Result<SocketGuard<'_>> {
        let socket = socket.try_clone()?;
        let mut threads = self.threads();
        if self.is_on() {
            socket.shutdown(Shutdown::Both)?;
        }
        threads.last_number += 1;
        let number = threads.last_number;
        threads.sockets.push((number, socket));
        Ok(SocketGuard {
            pause: self,
            number,
        })
    }
}

/// Marks a thread as waiting for work.
pub(super) struct RestGuard<'a> {
    pause: &'a Pause,
}

impl Drop for RestGuard<'_> {
    fn drop(&mut self) {
        self.pause.threads().resting -= 1;
    }
}

/// Marks a socket to be closed by a pause.
pub(super) struct SocketGuard<'a> {
    pause: &'a Pause,
    number: u64,
}

impl Drop for SocketGuard<'_> {
    fn drop(&mut self) {
        self.pause
            .threads()
            .sockets
            .retain(|(number, _)| *number != self.number);
    }
}
