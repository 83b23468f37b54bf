//! Blocking connections with deadlines, for task processes, which have no tokio.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use napreduce_local::world::World;
use napreduce_protocol::{Incoming, Outgoing, Secret};

use super::connection::closed_or_broken;
use super::error::TransportError;
use super::handshake::{Initiator, Keys, NOISE_BYTES};
use super::preamble::{self, ANSWER_BYTES, Role};
use super::records::{Opener, Sealer};

/// An authenticated connection whose calls block.
#[derive(Debug)]
pub struct BlockingConnection {
    /// For ending the connection from another thread.
    pub socket: TcpStream,
    sealer: Sealer,
    records: Vec<u8>,
    opener: Opener,
    silence_max: Duration,
}

/// Connects to a daemon; both sides prove that they know the secret. `secret` is the cluster's, or the token
/// of a task's job. Later calls fail if the peer neither sends nor receives anything for `silence_max`.
pub fn connect(
    address: &str,
    role: Role,
    secret: &Secret,
    deadline: Duration,
    silence_max: Duration,
) -> Result<BlockingConnection, TransportError> {
    let mut handshake = Handshake {
        deadline,
        end: Instant::now() + deadline,
        awaited: "the connection",
    };
    let mut socket = handshake.connect(address)?;
    socket.set_nodelay(true)?;
    let keys = handshake.initiate(&mut socket, role, secret)?;
    BlockingConnection::new(socket, keys, silence_max)
}

/// The client's part of the handshake, with its deadline.
struct Handshake {
    deadline: Duration,
    end: Instant,
    awaited: &'static str,
}

impl Handshake {
    /// Tries all addresses of a name, as far as time allows.
    fn connect(&self, address: &str) -> Result<TcpStream, TransportError> {
        let unreachable = |source| TransportError::Unreachable {
            address: address.to_owned(),
            source,
        };
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for resolved in address.to_socket_addrs().map_err(unreachable)? {
            match TcpStream::connect_timeout(&resolved, self.left()?) {
                Ok(socket) => return Ok(socket),
                Err(error) => last = error,
            }
        }
        Err(unreachable(last))
    }

    fn initiate(
        &mut self,
        socket: &mut TcpStream,
        role: Role,
        secret: &Secret,
    ) -> Result<Keys, TransportError> {
        let (initiator, opening) = Initiator::open(role, secret, &World::real().random)?;
        self.write(socket, &opening)?;
        self.awaited = "the server's version";
        let answer: [u8; ANSWER_BYTES] = self.read_array(socket)?;
        preamble::check_answer(&answer)?;
        self.awaited = "the server's proof";
        let proof: [u8; NOISE_BYTES] = self.read_array(socket).map_err(|error| match error {
            TransportError::ClosedEarly { .. } => TransportError::SecretRefused,
            error => error,
        })?;
        let (keys, confirmation) = initiator.finish(&proof)?;
        self.write(socket, &confirmation)?;
        Ok(keys)
    }

    /// Writes bytes. The socket's buffer is empty, so this does not wait for the peer.
    fn write(&self, socket: &mut TcpStream, bytes: &[u8]) -> Result<(), TransportError> {
        socket.set_write_timeout(Some(self.left()?))?;
        Ok(socket.write_all(bytes)?)
    }

    fn read_array<const COUNT: usize>(
        &self,
        socket: &mut TcpStream,
    ) -> Result<[u8; COUNT], TransportError> {
        let mut bytes = [0; COUNT];
        let mut have = 0;
        while have < COUNT {
            socket.set_read_timeout(Some(self.left()?))?;
            match socket.read(&mut bytes[have..]) {
                Ok(0) => {
                    return Err(TransportError::ClosedEarly {
                        awaited: self.awaited,
                    });
                }
                Ok(count) => have += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_timeout(&error) => return Err(self.timed_out()),
                Err(error) => return Err(closed_or_broken(error, self.awaited)),
            }
        }
        Ok(bytes)
    }

    fn left(&self) -> Result<Duration, TransportError> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            Err(self.timed_out())
        } else {
            Ok(left)
        }
    }

    fn timed_out(&self) -> TransportError {
        TransportError::TimedOut {
            awaited: self.awaited,
            deadline: self.deadline,
        }
    }
}

impl BlockingConnection {
    pub(super) fn new(
        socket: TcpStream,
        keys: Keys,
        silence_max: Duration,
    ) -> Result<BlockingConnection, TransportError> {
        socket.set_read_timeout(Some(silence_max))?;
        socket.set_write_timeout(Some(silence_max))?;
        let Keys { sealer, opener } = keys;
        Ok(BlockingConnection {
            socket,
            sealer,
            records: Vec::new(),
            opener,
            silence_max,
        })
    }

    /// Sends one message. After an error the connection is unusable.
    pub fn send<M: Outgoing>(&mut self, message: &M) -> Result<(), TransportError> {
        self.sealer.stage([message])?;
        loop {
            self.sealer.seal(&mut self.records)?;
            if self.records.is_empty() {
                return Ok(());
            }
            let written = self.socket.write_all(&self.records);
            written.map_err(|error| {
                silent_or_broken(error, "room for our message", self.silence_max)
            })?;
        }
    }

    /// Receives the next message; `None` if the peer ended the stream between two messages.
    pub fn receive<M: Incoming>(&mut self) -> Result<Option<M>, TransportError> {
        loop {
            if let Some(message) = self.opener.next()? {
                return Ok(Some(message));
            }
            match self.socket.read(self.opener.room()) {
                Ok(0) if self.opener.is_between_messages() => return Ok(None),
                Ok(0) => return Err(TransportError::CutShort),
                Ok(count) => self.opener.filled(count)?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(silent_or_broken(
                        error,
                        "its next message",
                        self.silence_max,
                    ));
                }
            }
        }
    }

    /// Returns the socket, to continue without encryption as negotiated. Nothing beyond the last message has
    /// been read, and the timeouts stay.
    pub fn into_plain(self) -> Result<TcpStream, TransportError> {
        if self.opener.is_between_messages() {
            Ok(self.socket)
        } else {
            Err(TransportError::InsideMessage)
        }
    }
}

/// Returns the meaning of an error of a socket with this timeout.
pub(crate) fn silent_or_broken(
    error: io::Error,
    awaited: &'static str,
    deadline: Duration,
) -> TransportError {
    if is_timeout(&error) {
        TransportError::TimedOut { awaited, deadline }
    } else {
        error.into()
    }
}

/// Returns whether an error is a socket timeout, which is reported as either kind.
fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}
