//! Sends pieces of segment files: unencrypted ones from file to socket by the kernel.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use napreduce_protocol::{FromDataServer, Payload, encode};
use rustix::fs::sendfile;
use rustix::net::{SendFlags, send};

use crate::shuffle::data_connection::{DataConnection, PlainConnection};
use crate::transport::TransportError;
use crate::transport::blocking::silent_or_broken;

/// Payload bytes of one encrypted message. A message is only usable as a whole, so it fits one record.
const CHUNK_BYTES: u32 = 60 << 10;

impl DataConnection {
    /// Sends a piece of a file as blocks; returns false if the file is too short, which leaves the peer
    /// waiting.
    pub(super) fn send_piece(
        &mut self,
        file: &File,
        offset: u64,
        length: u32,
    ) -> Result<bool, TransportError> {
        match self {
            DataConnection::Plain(connection) => connection.send_file(file, offset, length),
            DataConnection::Encrypted(connection) => {
                let mut sent = 0;
                while sent < length {
                    let mut bytes = vec![0; (length - sent).min(CHUNK_BYTES) as usize];
                    match file.read_exact_at(&mut bytes, offset + u64::from(sent)) {
                        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                            return Ok(false);
                        }
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

impl PlainConnection {
    fn send_file(&mut self, file: &File, offset: u64, length: u32) -> Result<bool, TransportError> {
        let announced = encode(&FromDataServer::Blocks { length })?;
        let silence_max = self.silence_max;
        let failed = |error| silent_or_broken(error, "room for a piece", silence_max);
        // In one packet with the first bytes of the file.
        let sent = send(
            &self.socket,
            &announced,
            SendFlags::MORE | SendFlags::NOSIGNAL,
        );
        let sent = sent.map_err(|error| failed(error.into()))?;
        let written = self.socket.write_all(&announced[sent..]);
        written.map_err(failed)?;
        let mut at = offset;
        let end = offset + u64::from(length);
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
}
