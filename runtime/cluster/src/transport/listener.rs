//! The listening socket of a daemon: runs handshakes and logs one line per refused peer.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use napreduce_local::world::{Acceptor, Stream, World};
use napreduce_protocol::Secret;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};

use super::HANDSHAKE_DEADLINE;
use super::connection::{Connection, accept};
use super::error::TransportError;
use super::preamble::Role;

/// Pause after an error of the listening socket, such as too many open files.
const RECOVERY: Duration = Duration::from_millis(100);

/// Listens and admits members of the cluster.
pub struct Listener {
    world: World,
    socket: Box<dyn Acceptor>,
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

impl Listener {
    /// Listens on `address`; port 0 means any. `refused` receives one line per refused peer.
    pub async fn bind(
        world: &World,
        address: &str,
        secret: Secret,
        refused: impl Fn(&str) + Send + 'static,
    ) -> Result<Listener, TransportError> {
        Listener::bind_with(world, address, secret, Limits::default(), refused).await
    }

    pub(super) async fn bind_with(
        world: &World,
        address: &str,
        secret: Secret,
        limits: Limits,
        refused: impl Fn(&str) + Send + 'static,
    ) -> Result<Listener, TransportError> {
        let failed = |source| TransportError::CannotListen {
            address: address.to_owned(),
            source,
        };
        let socket = world.net.listen(address).await.map_err(failed)?;
        let address = socket.address().map_err(failed)?;
        Ok(Listener {
            world: world.clone(),
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
                connected = accept_after(&mut *self.socket, self.recovered), if !crowded => self.begin_handshake(connected),
            }
        }
    }

    fn begin_handshake(&mut self, connected: io::Result<(Stream, SocketAddr)>) {
        let (stream, peer) = match connected {
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
        let secret = self.secret.clone();
        let random = self.world.random.clone();
        let deadline = self.limits.deadline;
        let handshake = async move {
            Handshake {
                peer,
                result: accept(stream, &secret, &random, deadline).await,
            }
        };
        let task = self.world.tasks.spawn_in(&mut self.handshakes, handshake);
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
    socket: &mut dyn Acceptor,
    recovered: Instant,
) -> io::Result<(Stream, SocketAddr)> {
    sleep_until(recovered).await;
    poll_fn(|context| socket.poll_accept(context)).await
}
