//! The data server of a worker: sealed segments and logs for whoever belongs to the cluster.
//!
//! Owns accepting data connections, their limits, and one thread for each, so that a slow reader holds up
//! nobody else. Does not own authentication (`transport`), where files lie (`ServedFiles`), nor what is said
//! on one connection (`session`).

mod indexes;
mod session;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use napreduce_engine::AttemptId;
use napreduce_protocol::{
    Connection, FromDataServer, Incoming, Listener, LogStream, Role, ToDataServer, TransportError,
};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use self::indexes::Indexes;
use self::session::Session;

/// How long a peer that is put off for want of room may take to hear it.
const REFUSAL_MAX: Duration = Duration::from_secs(2);
/// When such a peer is to come back.
const BUSY_MILLIS: u32 = 500;
const BUSY_SAID_EVERY: Duration = Duration::from_secs(60);
/// A connection takes so many descriptors at most: its socket, two more for its end, and a file.
const DESCRIPTORS_EACH: u64 = 4;
/// Descriptors that are left to everything else.
const DESCRIPTORS_KEPT: u64 = 128;

/// Where a worker keeps what it serves. Only ids come from the network, so no request can name another file.
pub(crate) trait ServedFiles: Send + Sync {
    /// The sealed output of a map attempt; `None` when the worker never heard of it.
    fn segment(&self, attempt: AttemptId) -> Option<PathBuf>;

    /// The length of what an attempt has printed to a stream, and at most so many bytes of it from
    /// `offset` on.
    fn read_log(
        &self,
        attempt: AttemptId,
        stream: LogStream,
        offset: u64,
        most: u64,
    ) -> io::Result<(u64, Vec<u8>)>;
}

/// The limits of a data server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DataServerSettings {
    /// Whether blocks are encrypted even for clients that do not ask for it.
    pub(crate) encrypt: bool,
    /// Connections at a time. Each has a thread and at most one open file.
    pub(crate) connections_max: usize,
    /// Connections at a time from one address. All reduces of a host come from one.
    pub(crate) connections_per_peer_max: usize,
    /// A peer that neither asks for nor takes anything for so long is disconnected.
    pub(crate) idle_max: Duration,
}

impl Default for DataServerSettings {
    fn default() -> DataServerSettings {
        DataServerSettings {
            encrypt: false,
            connections_max: 512,
            connections_per_peer_max: 128,
            idle_max: Duration::from_secs(60),
        }
    }
}

/// A running data server; ends, with all its connections, when dropped.
pub(crate) struct DataServer {
    address: SocketAddr,
    floor: Arc<Floor>,
    accepting: JoinHandle<()>,
}

/// What all sessions share.
struct Floor {
    files: Arc<dyn ServedFiles>,
    settings: DataServerSettings,
    log: Box<dyn Fn(&str) + Send + Sync>,
    indexes: Indexes,
    guests: Mutex<Guests>,
}

/// Who is connected.
#[derive(Default)]
struct Guests {
    closed: bool,
    next: u64,
    /// When somebody was told last that there is no room, as far as the log knows.
    said_busy: Option<Instant>,
    sockets: BTreeMap<u64, (IpAddr, TcpStream)>,
}

impl DataServerSettings {
    /// As many connections as there are descriptors for, where this process may open so many.
    pub(crate) fn within(self, descriptors: u64) -> DataServerSettings {
        let fit = descriptors.saturating_sub(DESCRIPTORS_KEPT) / DESCRIPTORS_EACH;
        let fit = usize::try_from(fit.max(8)).unwrap_or(usize::MAX);
        DataServerSettings { connections_max: self.connections_max.min(fit), ..self }
    }
}

impl DataServer {
    /// Serves on the current runtime. `log` is given one line about each thing that is wrong.
    pub(crate) fn start(
        mut listener: Listener,
        files: Arc<dyn ServedFiles>,
        settings: DataServerSettings,
        log: impl Fn(&str) + Send + Sync + 'static,
    ) -> DataServer {
        let address = listener.address();
        let (indexes, guests) = (Indexes::default(), Mutex::default());
        let floor = Arc::new(Floor { files, settings, log: Box::new(log), indexes, guests });
        let shared = Arc::clone(&floor);
        let accepting = tokio::spawn(async move {
            loop {
                let arrival = listener.accept().await;
                shared.receive(arrival);
            }
        });
        DataServer { address, floor, accepting }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for DataServer {
    fn drop(&mut self) {
        self.accepting.abort();
        let mut guests = self.floor.guests();
        guests.closed = true;
        for (_, socket) in guests.sockets.values() {
            // One that is gone already needs no shutting down.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

impl Floor {
    fn receive(self: &Arc<Self>, Incoming { role, connection, peer }: Incoming) {
        if !matches!(role, Role::Data | Role::Task(_)) {
            return (self.log)(&format!("refused {peer}: this address serves data connections only"));
        }
        if let Some(reason) = self.full(peer.ip()) {
            if self.guests().says_busy() {
                (self.log)(&format!("told {peer} to come back: {reason}"));
            }
            tokio::spawn(put_off(connection));
            return;
        }
        if let Err(error) = self.seat(role, connection, peer) {
            (self.log)(&format!("cannot serve {peer}: {error}"));
        }
    }

    fn full(&self, peer: IpAddr) -> Option<String> {
        let guests = self.guests();
        let DataServerSettings { connections_max, connections_per_peer_max, .. } = self.settings;
        if guests.sockets.len() >= connections_max {
            return Some(format!("{connections_max} data connections are open"));
        }
        let same = guests.sockets.values().filter(|(ip, _)| *ip == peer).count();
        (same >= connections_per_peer_max)
            .then(|| format!("{connections_per_peer_max} data connections from {peer} are open"))
    }

    /// Gives the connection a thread.
    fn seat(
        self: &Arc<Self>,
        role: Role,
        connection: Connection,
        peer: SocketAddr,
    ) -> Result<(), TransportError> {
        let connection = connection.into_blocking(self.settings.idle_max)?;
        let socket = connection.socket.try_clone()?;
        let farewell = socket.try_clone()?;
        let Some(number) = self.guests().welcome(peer.ip(), socket) else { return Ok(()) };
        let floor = Arc::clone(self);
        let thread = std::thread::Builder::new().name("data".into());
        let started = thread.spawn(move || {
            if let Err(error) = Session::serve(role, connection, &farewell, &floor) {
                (floor.log)(&format!("data connection of {peer}: {error}"));
            }
            floor.guests().sockets.remove(&number);
        });
        if started.is_err() {
            self.guests().sockets.remove(&number);
        }
        Ok(started.map(drop)?)
    }

    /// A panic while it was held leaves at worst an entry too many.
    fn guests(&self) -> MutexGuard<'_, Guests> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guests {
    /// Whether the log is to say again that there is no room.
    fn says_busy(&mut self) -> bool {
        let due = self.said_busy.is_none_or(|said| said.elapsed() > BUSY_SAID_EVERY);
        if due {
            self.said_busy = Some(Instant::now());
        }
        due
    }

    /// A number for the connection, unless the server is about to end.
    fn welcome(&mut self, peer: IpAddr, socket: TcpStream) -> Option<u64> {
        if self.closed {
            return None;
        }
        self.next += 1;
        self.sockets.insert(self.next, (peer, socket));
        Some(self.next)
    }
}

/// Says when to come back, in answer to the first message: closing with it unread would take the answer back.
async fn put_off(mut connection: Connection) {
    let talk = async {
        connection.receive::<ToDataServer>().await?;
        connection.send(&FromDataServer::Busy { millis: BUSY_MILLIS }).await
    };
    // A peer that does not listen is closed on all the same.
    let _ = timeout(REFUSAL_MAX, talk).await;
}
