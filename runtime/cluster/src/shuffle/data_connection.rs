//! A data connection after its handshake: blocking messages and raw payload, encrypted or not. Without
//! encryption the peer was still authenticated by the handshake, and every length and checksum is verified.
//! `--encrypt-shuffle` protects against attackers on the wire.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use napreduce_protocol::{FrameBuffer, FromDataServer, Payload, encode};
use rustix::fs::sendfile;
use rustix::net::{SendFlags, send};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::transport::TransportError;
use crate::transport::blocking::{BlockingConnection, silent_or_broken};

/// Read size of unencrypted sockets.
pub const BUFFER_BYTES: usize = 256 << 10;
/// Payload of one encrypted message. A message is only usable as a whole, so it fits one record.
const CHUNK_BYTES: u32 = 60 << 10;

/// One end of a data connection.
pub enum DataConnection {
    Plain(PlainConnection),
    Encrypted(Box<BlockingConnection>),
}

impl DataConnection {
    /// Continues a connection in the negotiated form.
    pub fn new(connection: BlockingConnection, encrypted: bool) -> Result<DataConnection, TransportError> {
        if encrypted {
            return Ok(DataConnection::Encrypted(Box::new(connection)));
        }
        Ok(DataConnection::Plain(PlainConnection::new(connection.into_plain()?)))
    }

    pub fn send<M: Serialize>(&mut self, message: &M) -> Result<(), TransportError> {
        match self {
            DataConnection::Plain(line) => Ok(line.socket.write_all(&encode(message)?)?),
            DataConnection::Encrypted(connection) => connection.send(message),
        }
    }

    /// Receives the next message; `None` if the peer ended the stream between two messages. `Silent` on a
    /// timeout; another call resumes.
    pub fn receive<M: DeserializeOwned>(&mut self) -> Result<Option<M>, TransportError> {
        match self {
            DataConnection::Plain(line) => line.receive(),
            DataConnection::Encrypted(connection) => connection.receive(),
        }
    }

    /// Sends a piece of a file as blocks; returns false if the file is too short, which leaves the peer
    /// waiting.
    pub fn send_piece(&mut self, file: &File, offset: u64, length: u32) -> Result<bool, TransportError> {
        match self {
            DataConnection::Plain(line) => line.send_file(file, offset, length),
            DataConnection::Encrypted(connection) => {
                let mut sent = 0;
                while sent < length {
                    let mut bytes = vec![0; (length - sent).min(CHUNK_BYTES) as usize];
                    match file.read_exact_at(&mut bytes, offset + u64::from(sent)) {
                        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
                        read => read?,
                    }
                    sent += bytes.len() as u32;
                    connection.send(&FromDataServer::Chunk(Payload(bytes)))?;
                }
                Ok(true)
            }
        }
    }
}

/// A socket that alternates messages and raw bytes.
pub struct PlainConnection {
    socket: TcpStream,
    /// Received but unread bytes: messages, possibly followed by raw bytes.
    arrived: FrameBuffer,
    buffer: Vec<u8>,
    /// The socket's read timeout.
    silence_max: Duration,
}

impl PlainConnection {
    fn new(socket: TcpStream) -> PlainConnection {
        let silence_max = socket.read_timeout().ok().flatten().unwrap_or_default();
        PlainConnection { socket, arrived: FrameBuffer::default(), buffer: Vec::new(), silence_max }
    }

    fn receive<M: DeserializeOwned>(&mut self) -> Result<Option<M>, TransportError> {
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

    /// Passes on at least one and at most `most` raw bytes; returns how many. `Silent` as in `receive`.
    pub fn receive_raw(&mut self, most: usize, take: impl FnOnce(&[u8])) -> Result<usize, TransportError> {
        if !self.arrived.is_between_frames() {
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

    fn send_file(&mut self, file: &File, offset: u64, length: u32) -> Result<bool, TransportError> {
        let announced = encode(&FromDataServer::Blocks { length })?;
        let silence_max = self.silence_max;
        let failed = |error| silent_or_broken(error, "room for a piece", silence_max);
        // In one packet with the first bytes of the file.
        let sent = send(&self.socket, &announced, SendFlags::MORE | SendFlags::NOSIGNAL);
        let sent = sent.map_err(|error| failed(error.into()))?;
        let written = self.socket.write_all(&announced[sent..]);
        written.map_err(failed)?;
        let (mut at, end) = (offset, offset + u64::from(length));
        while at < end {
            let left = (end - at) as usize;
            match sendfile(&self.socket, file, Some(&mut at), left) {
                Ok(0) => return Ok(false),
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(failed(error.into())),
            }
        }
        Ok(true)
    }

    fn read(&mut self, most: usize) -> Result<usize, TransportError> {
        loop {
            match self.socket.read(&mut self.buffer[..most]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => {
                    return read.map_err(|error| silent_or_broken(error, "its next bytes", self.silence_max));
                }
            }
        }
    }
}
