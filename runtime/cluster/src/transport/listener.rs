//! The listening socket of a daemon: runs handshakes and logs one line per refused peer.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use napreduce_protocol::Secret;
use rustix::net::sockopt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};

use super::HANDSHAKE_DEADLINE;
use super::connection::{Connection, accept};
use super::error::TransportError;
use super::preamble::Role;

/// Pause after an error of the listening socket, such as too many open files.
const RECOVERY: Duration = Duration::from_millis(100);
/// A host that does not answer this many probes, the first after this idle time, is dead.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_TRIES: u32 = 3;

/// Listens and admits members of the cluster.
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    secret: Secret,
    limits: Limits,
    handshakes: JoinSet<Handshake>,
    /// In order of arrival.
    pending: VecDeque<Pending>,
    recovered: Instant,
    refused: Box<dyn Fn(&str) + Send>,
}

/// A finished handshake.
struct Handshake {
    peer: SocketAddr,
    result: Result<(Role, Connection), TransportError>,
}

/// A listener's limits; other values than the default are for tests.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Maximum concurrent handshakes. A member's handshake takes milliseconds; a stranger's may last until
    /// the deadline.
    pub(super) pending_max: usize,
    pub(super) deadline: Duration,
    /// The deadline of the oldest handshake while the maximum number is pending.
    pub(super) crowded_deadline: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            pending_max: 256,
            deadline: HANDSHAKE_DEADLINE,
            crowded_deadline: Duration::from_millis(500),
        }
    }
}

struct Pending {
    id: Id,
    peer: SocketAddr,
    began: Instant,
    task: AbortHandle,
}

/// An authenticated peer.
#[derive(Debug)]
pub struct Incoming {
    pub role: Role,
    pub connection: Connection,
    pub peer: SocketAddr,
}

/// Lets the kernel detect a dead host on idle connections. If that fails, the next write detects it.
fn enable_keepalive(socket: &TcpStream) {
    let _ = sockopt::set_socket_keepalive(socket, true)
        .and_then(|()| sockopt::set_tcp_keepidle(socket, KEEPALIVE_IDLE))
        .and_then(|()| sockopt::set_tcp_keepintvl(socket, KEEPALIVE_INTERVAL))
        .and_then(|()| sockopt::set_tcp_keepcnt(socket, KEEPALIVE_TRIES));
}

impl Listener {
    /// Listens on `address`; port 0 means any. `refused` receives one line per refused peer.
    pub async fn bind(
        address: &str,
        secret: Secret,
        refused: impl Fn(&str) + Send + 'static,
    ) -> Result<Listener, TransportError> {
        Listener::bind_with(address, secret, Limits::default(), refused).await
    }

    pub(super) async fn bind_with(
        address: &str,
        secret: Secret,
        limits: Limits,
        refused: impl Fn(&str) + Send + 'static,
    ) -> Result<Listener, TransportError> {
        let failed = |source| TransportError::CannotListen {
            address: address.to_owned(),
            source,
        };
        let socket = TcpListener::bind(address).await.map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        Ok(Listener {
            socket,
            address,
            secret,
            limits,
            handshakes: JoinSet::new(),
            pending: VecDeque::new(),
            recovered: Instant::now(),
            refused: Box::new(refused),
        })
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the next authenticated peer. Handshakes continue between calls; new ones begin only while it
    /// is awaited. Cancel-safe.
    pub async fn accept(&mut self) -> Incoming {
        loop {
            let crowded = self.pending.len() >= self.limits.pending_max;
            let patience = self
                .pending
                .front()
                .map(|oldest| oldest.began + self.limits.crowded_deadline);
            tokio::select! {
                biased;
                Some(ended) = self.handshakes.join_next_with_id() => {
                    if let Some(arrival) = self.end_handshake(ended) {
                        return arrival;
                    }
                }
                () = sleep_until(patience.unwrap_or_else(Instant::now)), if crowded => self.drop_oldest(),
                connected = accept_after(&self.socket, self.recovered), if !crowded => self.begin_handshake(connected),
            }
        }
    }

    fn begin_handshake(&mut self, connected: io::Result<(TcpStream, SocketAddr)>) {
        let (socket, peer) = match connected {
            Ok(connected) => connected,
            Err(error) => {
                self.recovered = Instant::now() + RECOVERY;
                (self.refused)(&format!(
                    "cannot accept a connection at {}: {error}",
                    self.address
                ));
                return;
            }
        };
        enable_keepalive(&socket);
        let secret = self.secret.clone();
        let deadline = self.limits.deadline;
        let task = self.handshakes.spawn(async move {
            Handshake {
                peer,
                result: accept(socket, &secret, deadline).await,
            }
        });
        self.pending.push_back(Pending {
            id: task.id(),
            peer,
            began: Instant::now(),
            task,
        });
    }

    fn end_handshake(&mut self, ended: Result<(Id, Handshake), JoinError>) -> Option<Incoming> {
        let id = match &ended {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        self.pending.retain(|pending| pending.id != id);
        match ended {
            Ok((
                _,
                Handshake {
                    peer,
                    result: Ok((role, connection)),
                },
            )) => {
                return Some(Incoming {
                    role,
                    connection,
                    peer,
                });
            }
            Ok((
                _,
                Handshake {
                    peer,
                    result: Err(error),
                },
            )) => self.refuse(peer, &error),
            // Cancelled and logged here.
            Err(error) if error.is_cancelled() => {}
            Err(error) => (self.refused)(&format!("a handshake failed: {error}; please report it")),
        }
        None
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.pending.pop_front() {
            oldest.task.abort();
            self.refuse(
                oldest.peer,
                &TransportError::Crowded {
                    limit: self.limits.pending_max,
                },
            );
        }
    }

    fn refuse(&self, peer: SocketAddr, error: &TransportError) {
        (self.refused)(&format!("refused {peer}: {error}"));
    }
}

/// Accepts the next connection, once the listening socket has recovered.
async fn accept_after(
    socket: &TcpListener,
    recovered: Instant,
) -> io::Result<(TcpStream, SocketAddr)> {
    sleep_until(recovered).await;
    socket.accept().await
}
