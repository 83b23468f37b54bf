//! Connections for the daemons, on tokio: sockets, handshake steps and their deadline.

use std::io;
use std::time::Duration;

use napreduce_local::world::{Random, Receiving, Sending, Stream, World};
use napreduce_protocol::{Incoming, Outgoing, Secret};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout, timeout_at};

use super::blocking::BlockingConnection;
use super::error::TransportError;
use super::handshake::{Initiator, Keys, NOISE_BYTES, Responder};
use super::preamble::{self, ANSWER_BYTES, GREETING_BYTES, Role};
use super::records::{CONFIRMATION_BYTES, Opener, Sealer};
use super::transfer::{SILENCE_MAX, TransferClock};

const ACCEPTED: &str = "the peer to accept data";
/// Send buffer of the kernel for a client's connection. A larger one, as the kernel chooses it, hides for a minute that a
/// slow link makes progress.
const CLIENT_BUFFER_BYTES: usize = 256 << 10;
/// Limit on data read from a refused peer before closing.
const FAREWELL_BYTES_MAX: usize = 1 << 10;

/// An authenticated connection.
#[derive(Debug)]
pub struct Connection {
    sender: MessageSender,
    receiver: MessageReceiver,
}

/// The sending half.
#[derive(Debug)]
pub struct MessageSender {
    socket: Box<dyn Sending>,
    sealer: Sealer,
    records: Vec<u8>,
    /// Bytes of the records already written.
    written: usize,
    clock: TransferClock,
    silence_max: Duration,
}

/// The receiving half.
#[derive(Debug)]
pub struct MessageReceiver {
    socket: Box<dyn Receiving>,
    opener: Opener,
    clock: TransferClock,
    silence_max: Duration,
}

/// Connects to a daemon; both sides prove that they know the secret. `secret` is the cluster's, or the token
/// of a task's job.
pub async fn connect(
    world: &World,
    address: &str,
    role: Role,
    secret: &Secret,
    deadline: Duration,
) -> Result<Connection, TransportError> {
    let mut awaited = "the connection";
    let handshake = async {
        let unreachable = |source| TransportError::Unreachable {
            address: address.to_owned(),
            source,
        };
        let mut stream = world.net.connect(address).await.map_err(unreachable)?;
        limit_send_buffer(&stream, role)?;
        let keys = initiate(&mut stream, role, secret, &world.random, &mut awaited).await?;
        Ok(Connection::new(stream, keys))
    };
    let ended = timeout(deadline, handshake).await;
    ended.unwrap_or_else(|_| Err(TransportError::TimedOut { awaited, deadline }))
}

/// Authenticates a peer that has connected; returns the role that it requests.
pub(super) async fn accept(
    mut stream: Stream,
    secret: &Secret,
    random: &Random,
    deadline: Duration,
) -> Result<(Role, Connection), TransportError> {
    let mut awaited = "its first bytes";
    let handshake = async {
        let (role, keys) = respond(&mut stream, secret, random, &mut awaited).await?;
        limit_send_buffer(&stream, role)?;
        Ok((role, Connection::new(stream, keys)))
    };
    let ended = timeout(deadline, handshake).await;
    ended.unwrap_or_else(|_| Err(TransportError::TimedOut { awaited, deadline }))
}

fn limit_send_buffer(stream: &Stream, role: Role) -> io::Result<()> {
    if role == Role::Client {
        stream.sending.limit_buffer(CLIENT_BUFFER_BYTES)?;
    }
    Ok(())
}

/// The client's part of the handshake.
async fn initiate(
    stream: &mut Stream,
    role: Role,
    secret: &Secret,
    random: &Random,
    awaited: &mut &'static str,
) -> Result<Keys, TransportError> {
    let (initiator, opening) = Initiator::open(role, secret, random)?;
    stream.sending.write_all(&opening).await?;
    *awaited = "the server's version";
    let answer: [u8; ANSWER_BYTES] = read_array(stream, awaited).await?;
    preamble::check_answer(&answer)?;
    *awaited = "the server's proof";
    let proof: [u8; NOISE_BYTES] =
        read_array(stream, awaited)
            .await
            .map_err(|error| match error {
                TransportError::ClosedEarly { .. } => TransportError::SecretRefused,
                error => error,
            })?;
    let (keys, confirmation) = initiator.finish(&proof)?;
    stream.sending.write_all(&confirmation).await?;
    Ok(keys)
}

/// The server's part of the handshake.
async fn respond(
    stream: &mut Stream,
    secret: &Secret,
    random: &Random,
    awaited: &mut &'static str,
) -> Result<(Role, Keys), TransportError> {
    let greeting: [u8; GREETING_BYTES] = read_array(stream, awaited).await?;
    let role = match preamble::check_greeting(&greeting) {
        Ok(role) => role,
        // Strangers get no answer; other versions of napreduce get our version.
        Err(error @ TransportError::NotNapreduce { .. }) => return Err(error),
        Err(error) => {
            refuse(stream).await;
            return Err(error);
        }
    };
    *awaited = "its proof";
    let proof: [u8; NOISE_BYTES] = read_array(stream, awaited).await?;
    let (responder, reply) = match Responder::reply(&greeting, &proof, &role.key(secret), random) {
        Err(error @ TransportError::OtherSecret) => {
            refuse(stream).await;
            return Err(error);
        }
        replied => replied?,
    };
    stream.sending.write_all(&reply).await?;
    *awaited = "its confirmation";
    let confirmation: [u8; CONFIRMATION_BYTES] = read_array(stream, awaited).await?;
    Ok((role, responder.confirm(&confirmation)?))
}

/// Sends our version to a refused peer and waits for it to disconnect: closing with unread bytes would
/// discard the answer. Errors are ignored, since the connection ends anyway.
async fn refuse(stream: &mut Stream) {
    if stream.sending.write_all(&preamble::answer()).await.is_ok()
        && stream.sending.shutdown().await.is_ok()
    {
        let mut unread = [0; FAREWELL_BYTES_MAX];
        let mut room = &mut unread[..];
        while let Ok(count @ 1..) = stream.receiving.read(room).await {
            room = &mut room[count..];
        }
    }
}

/// Reads exactly as much as the next step needs.
async fn read_array<const COUNT: usize>(
    stream: &mut Stream,
    awaited: &'static str,
) -> Result<[u8; COUNT], TransportError> {
    let mut bytes = [0; COUNT];
    match stream.receiving.read_exact(&mut bytes).await {
        Ok(_) => Ok(bytes),
        Err(error) => Err(closed_or_broken(error, awaited)),
    }
}

/// Returns the meaning of a socket error during the handshake: a reset counts as closing.
pub(super) fn closed_or_broken(error: io::Error, awaited: &'static str) -> TransportError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe => TransportError::ClosedEarly { awaited },
        _ => error.into(),
    }
}

impl Connection {
    fn new(stream: Stream, keys: Keys) -> Connection {
        let sender = MessageSender {
            socket: stream.sending,
            sealer: keys.sealer,
            records: Vec::new(),
            written: 0,
            clock: TransferClock::default(),
            silence_max: SILENCE_MAX,
        };
        let receiver = MessageReceiver {
            socket: stream.receiving,
            opener: keys.opener,
            clock: TransferClock::default(),
            silence_max: SILENCE_MAX,
        };
        Connection { sender, receiver }
    }

    /// Splits the connection for two tasks.
    pub fn split(self) -> (MessageSender, MessageReceiver) {
        (self.sender, self.receiver)
    }

    /// Limits the time in which no byte of a message moves; by default 20 s.
    pub(crate) fn limit_silence(&mut self, silence_max: Duration) {
        self.sender.silence_max = silence_max;
        self.receiver.silence_max = silence_max;
    }

    /// Returns the clocks of the messages that are being sent and received.
    pub(crate) fn transfers(&self) -> [TransferClock; 2] {
        [self.sender.clock.clone(), self.receiver.clock.clone()]
    }

    /// See [`MessageSender::send`].
    pub async fn send<M: Outgoing>(&mut self, message: &M) -> Result<(), TransportError> {
        self.sender.send(message).await
    }

    /// See [`MessageReceiver::receive`].
    pub async fn receive<M: Incoming>(&mut self) -> Result<Option<M>, TransportError> {
        self.receiver.receive().await
    }

    /// Receives the next message; fails if it has not begun after `deadline`, if it stops arriving, or at the end of
    /// the connection.
    pub async fn receive_within<M: Incoming>(
        &mut self,
        deadline: Duration,
        awaited: &'static str,
    ) -> Result<M, TransportError> {
        let received = self.receiver.receive_within(deadline, awaited).await?;
        received.ok_or(TransportError::ClosedEarly { awaited })
    }

    /// Turns it into a connection for a blocking thread. Later calls fail if the peer neither sends nor
    /// receives anything for `silence_max`.
    pub fn into_blocking(
        self,
        silence_max: Duration,
    ) -> Result<BlockingConnection, TransportError> {
        if !self.sender.is_done() {
            return Err(TransportError::InsideMessage);
        }
        let MessageSender { socket, sealer, .. } = self.sender;
        let MessageReceiver {
            socket: receiving,
            opener,
            ..
        } = self.receiver;
        let stream = Stream {
            receiving,
            sending: socket,
        };
        BlockingConnection::new(
            stream.into_blocking()?,
            Keys { sealer, opener },
            silence_max,
        )
    }
}

impl MessageSender {
    /// Sends one message. If the future is dropped half-way, the next call sends the rest.
    ///
    /// Fails if the peer accepts no byte for a while, by default 20 s.
    pub async fn send<M: Outgoing>(&mut self, message: &M) -> Result<(), TransportError> {
        self.send_all([message]).await
    }

    /// Sends messages that are ready together, in as few writes as possible; none of them if one
    /// cannot be encoded.
    pub async fn send_all<M: Outgoing>(
        &mut self,
        messages: impl IntoIterator<Item = M>,
    ) -> Result<(), TransportError> {
        let silence_max = self.silence_max;
        self.sealer.stage(messages)?;
        loop {
            while self.written < self.records.len() {
                let writing = self.socket.write(&self.records[self.written..]);
                let written = timeout_at(self.clock.last_moved() + silence_max, writing).await;
                let silent = TransportError::TimedOut {
                    awaited: ACCEPTED,
                    deadline: silence_max,
                };
                match written.map_err(|_| silent)?? {
                    0 => return Err(TransportError::Io(io::ErrorKind::WriteZero.into())),
                    count => self.written += count,
                }
                self.clock.moved();
            }
            self.written = 0;
            self.sealer.seal(&mut self.records)?;
            if self.records.is_empty() {
                self.clock.ended();
                return Ok(());
            }
        }
    }

    /// Returns whether no partial send is pending.
    fn is_done(&self) -> bool {
        self.written == self.records.len() && self.sealer.is_done()
    }
}

impl MessageReceiver {
    /// Receives the next message; `None` if the peer ended the stream between two messages. Cancel-safe: the
    /// next call resumes.
    ///
    /// Waits for any time until a message begins; then fails if no byte of it arrives for a while, by default
    /// 20 s.
    pub async fn receive<M: Incoming>(&mut self) -> Result<Option<M>, TransportError> {
        self.receive_message(None, "the rest of a message").await
    }

    /// The same, and fails if the message has not begun after `deadline`.
    pub async fn receive_within<M: Incoming>(
        &mut self,
        deadline: Duration,
        awaited: &'static str,
    ) -> Result<Option<M>, TransportError> {
        self.receive_message(Some(deadline), awaited).await
    }

    async fn receive_message<M: Incoming>(
        &mut self,
        first_byte: Option<Duration>,
        awaited: &'static str,
    ) -> Result<Option<M>, TransportError> {
        let began = Instant::now();
        let silence_max = self.silence_max;
        loop {
            if let Some(message) = self.opener.next()? {
                self.clock.ended();
                return Ok(Some(message));
            }
            let is_inside = !self.opener.is_between_messages();
            let limit = match first_byte {
                _ if is_inside => Some((self.clock.last_moved(), silence_max)),
                Some(deadline) => Some((began, deadline)),
                None => None,
            };
            let reading = self.socket.read(self.opener.room());
            let read = match limit {
                Some((since, deadline)) => timeout_at(since + deadline, reading)
                    .await
                    .map_err(|_| TransportError::TimedOut { awaited, deadline })?,
                None => reading.await,
            };
            match read? {
                0 if !is_inside => return Ok(None),
                0 => return Err(TransportError::CutShort),
                count => self.opener.filled(count)?,
            }
            self.clock.moved();
        }
    }
}
