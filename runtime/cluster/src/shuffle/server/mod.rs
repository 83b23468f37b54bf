//! The data server of a worker: serves sealed segments and logs to members of the cluster. Each connection
//! has its own thread, so a slow reader does not hold up others.

mod indexes;
mod pieces;
mod session;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use napreduce_engine::AttemptId;
use napreduce_local::world::Tasks;
use napreduce_protocol::{FromDataServer, LogStream, ToDataServer, lock};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use self::indexes::Indexes;
use self::session::Session;
use crate::transport::{Connection, Incoming, Listener, Role, TransportError};

/// Maximum time spent on answering a peer when the server is full.
const REFUSAL_MAX: Duration = Duration::from_secs(2);
/// Retry time for a refused peer.
const BUSY_MILLIS: u32 = 500;
const BUSY_LOG_INTERVAL: Duration = Duration::from_secs(60);
/// Maximum descriptors per connection: the socket, two duplicates of it, and a file.
const DESCRIPTORS_EACH: u64 = 4;
/// Descriptors reserved for everything else.
const DESCRIPTORS_KEPT: u64 = 128;

/// The files that a worker serves. Only ids come from the network, so no request can name another file.
pub(crate) trait ServedFiles: Send + Sync {
    /// The sealed output of a map attempt; `None` if the attempt is unknown.
    fn segment(&self, attempt: AttemptId) -> Option<PathBuf>;

    /// Returns the length of an attempt's stream, and up to the requested number of bytes from `offset` on.
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
    /// Whether blocks are encrypted even for clients that do not request it.
    pub(crate) encrypt: bool,
    /// Concurrent connections; each has a thread and at most one open file.
    pub(crate) connections_max: usize,
    /// Concurrent connections from one address, which all reduces of a host share.
    pub(crate) connections_per_peer_max: usize,
    /// A peer that is idle for this long is disconnected.
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

/// A running data server; stops and closes all connections when dropped.
pub(crate) struct DataServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

/// State shared by all sessions.
struct Shared {
    tasks: Tasks,
    files: Arc<dyn ServedFiles>,
    settings: DataServerSettings,
    log: Box<dyn Fn(&str) + Send + Sync>,
    indexes: Indexes,
    connections: Mutex<OpenConnections>,
}

/// The open connections.
#[derive(Default)]
struct OpenConnections {
    closed: bool,
    next: u64,
    /// When the log last reported that the server is full.
    busy_logged: Option<Instant>,
    sockets: BTreeMap<u64, (IpAddr, TcpStream)>,
}

impl DataServerSettings {
    /// Limits the connections to the descriptors that this process may open.
    pub(crate) fn within(self, descriptors: u64) -> DataServerSettings {
        let fit = descriptors.saturating_sub(DESCRIPTORS_KEPT) / DESCRIPTORS_EACH;
        let fit = usize::try_from(fit.max(8)).unwrap_or(usize::MAX);
        DataServerSettings {
            connections_max: self.connections_max.min(fit),
            ..self
        }
    }
}

impl DataServer {
    /// Serves as a task. `log` receives one line per problem.
    pub(crate) fn start(
        tasks: Tasks,
        mut listener: Listener,
        files: Arc<dyn ServedFiles>,
        settings: DataServerSettings,
        log: impl Fn(&str) + Send + Sync + 'static,
    ) -> DataServer {
        let address = listener.address();
        let indexes = Indexes::default();
        let connections = Mutex::default();
        let shared = Arc::new(Shared {
            tasks: tasks.clone(),
            files,
            settings,
            log: Box::new(log),
            indexes,
            connections,
        });
        let admitting = Arc::clone(&shared);
        let accepting = tasks.spawn(async move {
            loop {
                let arrival = listener.accept().await;
                admitting.admit(arrival);
            }
        });
        DataServer {
            address,
            shared,
            accepting,
        }
    }

    /// The address that it listens on.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for DataServer {
    fn drop(&mut self) {
        self.accepting.abort();
        let mut connections = self.shared.connections();
        connections.closed = true;
        for (_, socket) in connections.sockets.values() {
            // Fails only for a closed connection.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    fn admit(
        self: &Arc<Self>,
        Incoming {
            role,
            connection,
            peer,
        }: Incoming,
    ) {
        if !matches!(role, Role::Data | Role::Task(_)) {
            return (self.log)(&format!(
                "refused {peer}: this address serves data connections only"
            ));
        }
        if let Some(reason) = self.limit_reached(peer.ip()) {
            if self.connections().is_log_due() {
                (self.log)(&format!("asked {peer} to retry: {reason}"));
            }
            self.tasks.spawn(answer_busy(connection));
            return;
        }
        if let Err(error) = self.start_session(role, connection, peer) {
            (self.log)(&format!("cannot serve {peer}: {error}"));
        }
    }

    /// Returns the limit that another connection from `peer` would exceed, if any.
    fn limit_reached(&self, peer: IpAddr) -> Option<String> {
        let connections = self.connections();
        let DataServerSettings {
            connections_max,
            connections_per_peer_max,
            ..
        } = self.settings;
        if connections.sockets.len() >= connections_max {
            return Some(format!(
                "limit of {connections_max} data connections reached"
            ));
        }
        let same = connections
            .sockets
            .values()
            .filter(|(ip, _)| *ip == peer)
            .count();
        (same >= connections_per_peer_max).then(|| {
            format!("limit of {connections_per_peer_max} data connections from {peer} reached")
        })
    }

    /// Starts the connection's thread.
    fn start_session(
        self: &Arc<Self>,
        role: Role,
        connection: Connection,
        peer: SocketAddr,
    ) -> Result<(), TransportError> {
        let connection = connection.into_blocking(self.settings.idle_max)?;
        let socket = connection.socket.try_clone()?;
        let farewell = socket.try_clone()?;
        let Some(number) = self.connections().register(peer.ip(), socket) else {
            return Ok(());
        };
        let shared = Arc::clone(self);
        let thread = std::thread::Builder::new().name("data".into());
        let started = thread.spawn(move || {
            if let Err(error) = Session::serve(role, connection, &farewell, &shared) {
                (shared.log)(&format!("data connection of {peer}: {error}"));
            }
            shared.connections().sockets.remove(&number);
        });
        if started.is_err() {
            self.connections().sockets.remove(&number);
        }
        Ok(started.map(drop)?)
    }

    /// Locks the connections. A panic while the lock was held leaves at worst one entry too many.
    fn connections(&self) -> MutexGuard<'_, OpenConnections> {
        lock(&self.connections)
    }
}

impl OpenConnections {
    /// Returns whether to log again that the server is full.
    fn is_log_due(&mut self) -> bool {
        let due = self
            .busy_logged
            .is_none_or(|logged| logged.elapsed() > BUSY_LOG_INTERVAL);
        if due {
            self.busy_logged = Some(Instant::now());
        }
        due
    }

    /// Registers a connection and returns its number; `None` if the server is stopping.
    fn register(&mut self, peer: IpAddr, socket: TcpStream) -> Option<u64> {
        if self.closed {
            return None;
        }
        self.next += 1;
        self.sockets.insert(self.next, (peer, socket));
        Some(self.next)
    }
}

/// Answers the first message with a retry time: closing with it unread would discard the answer.
async fn answer_busy(mut connection: Connection) {
    let talk = async {
        connection.receive::<ToDataServer>().await?;
        connection
            .send(&FromDataServer::Busy {
                millis: BUSY_MILLIS,
            })
            .await
    };
    // Close even if the peer does not listen.
    let _ = timeout(REFUSAL_MAX, talk).await;
}
