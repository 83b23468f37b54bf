//! A data connection after its handshake: blocking messages and raw payload, encrypted or not. Without
//! encryption the peer was still authenticated by the handshake, and every length and checksum is verified.
//! `--encrypt-shuffle` protects against attackers on the wire.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use napreduce_protocol::{FrameBuffer, Incoming, Outgoing, encode};

use crate::transport::TransportError;
use crate::transport::blocking::{BlockingConnection, silent_or_broken};

/// Read size of unencrypted sockets.
pub const BUFFER_BYTES: usize = 256 << 10;

/// One end of a data connection.
pub enum DataConnection {
    Plain(PlainConnection),
    Encrypted(Box<BlockingConnection>),
}

impl DataConnection {
    /// Continues a connection in the negotiated form.
    pub fn new(
        connection: BlockingConnection,
        encrypted: bool,
    ) -> Result<DataConnection, TransportError> {
        if encrypted {
            return Ok(DataConnection::Encrypted(Box::new(connection)));
        }
        let socket = connection.into_plain()?;
        Ok(DataConnection::Plain(PlainConnection::new(socket)))
    }

    pub fn send<M: Outgoing>(&mut self, message: &M) -> Result<(), TransportError> {
        match self {
            DataConnection::Plain(connection) => {
                let bytes = encode(message)?;
                connection.socket.write_all(&bytes)?;
                Ok(())
            }
            DataConnection::Encrypted(connection) => connection.send(message),
        }
    }

    /// Receives the next message; `None` if the peer ended the stream between two messages. `TimedOut` if
    /// the peer was silent; another call resumes.
    pub fn receive<M: Incoming>(&mut self) -> Result<Option<M>, TransportError> {
        match self {
            DataConnection::Plain(connection) => connection.receive(),
            DataConnection::Encrypted(connection) => connection.receive(),
        }
    }
}

/// A socket that alternates messages and raw bytes.
pub struct PlainConnection {
    pub(super) socket: TcpStream,
    /// Received but unread bytes: messages, possibly followed by raw bytes.
    arrived: FrameBuffer,
    buffer: Vec<u8>,
    /// The socket's read timeout.
    pub(super) silence_max: Duration,
}

impl PlainConnection {
    fn new(socket: TcpStream) -> PlainConnection {
        let silence_max = socket.read_timeout().ok().flatten().unwrap_or_default();
        PlainConnection {
            socket,
            arrived: FrameBuffer::default(),
            buffer: Vec::new(),
            silence_max,
        }
    }

    fn receive<M: Incoming>(&mut self) -> Result<Option<M>, TransportError> {
        loop {
            if let Some(message) = self.arrived.next_message()? {
                return Ok(Some(message));
            }
            self.buffer.resize(BUFFER_BYTES, 0);
            match self.read(BUFFER_BYTES)? {
                0 if self.arrived.is_between_frames() => return Ok(None),
                0 => return Err(TransportError::CutShort),
                count => self.arrived.push(&self.buffer[..count]),
            }
        }
    }

    /// Passes on at least one and at most `most` raw bytes; returns how many. `TimedOut` as in `receive`.
    pub fn receive_raw(
        &mut self,
        most: usize,
        take: impl FnOnce(&[u8]),
    ) -> Result<usize, TransportError> {
        let has_arrived = !self.arrived.is_between_frames();
        if has_arrived {
            let bytes = self.arrived.take_raw(most);
            take(bytes);
            return Ok(bytes.len());
        }
        self.buffer.resize(BUFFER_BYTES, 0);
        // Stop at the end of the raw bytes, so that the next message goes to the frame buffer.
        match self.read(most.min(BUFFER_BYTES))? {
            0 => Err(TransportError::CutShort),
            count => {
                take(&self.buffer[..count]);
                Ok(count)
            }
        }
    }

    fn read(&mut self, most: usize) -> Result<usize, TransportError> {
        loop {
            match self.socket.read(&mut self.buffer[..most]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => {
                    return read.map_err(|error| {
                        silent_or_broken(error, "its next bytes", self.silence_max)
                    });
                }
            }
        }
    }
}
