//! Converts messages to encrypted records and back, without I/O. Buffers grow with received data, never with
//! claimed lengths.

use std::fmt;
use std::sync::Arc;

use napreduce_protocol::{FrameBuffer, Incoming, Outgoing, encode_onto};
use snow::StatelessTransportState;

use super::error::TransportError;

const LENGTH_BYTES: usize = 2;
const TAG_BYTES: usize = 16;
/// Maximum length of a ciphertext in Noise and in the length field.
const CIPHERTEXT_BYTES_MAX: usize = 65_535;
pub(super) const PLAINTEXT_BYTES_MAX: usize = CIPHERTEXT_BYTES_MAX - TAG_BYTES;
/// An empty record.
pub(super) const CONFIRMATION_BYTES: usize = LENGTH_BYTES + TAG_BYTES;
/// Memory that a buffer keeps between messages.
const BUFFER_BYTES_KEPT: usize = 64 << 10;
/// Initial buffer size for a record.
const ROOM_BYTES: usize = 4 << 10;
/// Maximum records under one key. It is far below the limit of ChaCha20-Poly1305 (its nonce has 64 bits) and
/// never reached: it allows 18 million terabytes of full records. So the keys of a connection never change.
const RECORDS_MAX: u64 = 1 << 48;

/// Maximum bytes encrypted at a time, so that a long message needs its own length of memory only once.
const BATCH_BYTES_MAX: usize = 16 * PLAINTEXT_BYTES_MAX;

/// Encrypts one direction.
pub(super) struct Sealer {
    cipher: Arc<StatelessTransportState>,
    next: u64,
    /// Encoded messages; the first `sealed` bytes are sealed.
    plain: Vec<u8>,
    sealed: usize,
}

impl Sealer {
    pub(super) fn new(cipher: Arc<StatelessTransportState>) -> Sealer {
        Sealer {
            cipher,
            next: 0,
            plain: Vec::new(),
            sealed: 0,
        }
    }

    /// Returns the empty record that the client sends first.
    pub(super) fn confirmation(&mut self) -> Result<[u8; CONFIRMATION_BYTES], TransportError> {
        let mut record = Vec::with_capacity(CONFIRMATION_BYTES);
        self.seal_record(&[], &mut record)?;
        Ok(record
            .try_into()
            .expect("an empty record is a length and a tag"))
    }

    /// Stages messages to be sealed together; stages none if one cannot be encoded.
    pub(super) fn stage<M: Outgoing>(
        &mut self,
        messages: impl IntoIterator<Item = M>,
    ) -> Result<(), TransportError> {
        let start = self.plain.len();
        for message in messages {
            if let Err(error) = encode_onto(&mut self.plain, &message) {
                self.plain.truncate(start);
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Replaces `records` by those of the next staged bytes; leaves none once all are sealed.
    pub(super) fn seal(&mut self, records: &mut Vec<u8>) -> Result<(), TransportError> {
        records.clear();
        let end = self.plain.len().min(self.sealed + BATCH_BYTES_MAX);
        while self.sealed < end {
            let plain = std::mem::take(&mut self.plain);
            let piece = self.sealed..end.min(self.sealed + PLAINTEXT_BYTES_MAX);
            let result = self.seal_record(&plain[piece.clone()], records);
            self.plain = plain;
            result?;
            self.sealed = piece.end;
        }
        if self.sealed == self.plain.len() {
            self.plain.clear();
            self.plain.shrink_to(BUFFER_BYTES_KEPT);
            self.sealed = 0;
        }
        if records.is_empty() {
            records.shrink_to(BUFFER_BYTES_KEPT);
        }
        Ok(())
    }

    /// Returns whether everything staged has been sealed.
    pub(super) fn is_done(&self) -> bool {
        self.plain.is_empty()
    }

    /// Appends one record.
    pub(super) fn seal_record(
        &mut self,
        plain: &[u8],
        records: &mut Vec<u8>,
    ) -> Result<(), TransportError> {
        let nonce = take_nonce(&mut self.next)?;
        let length = plain.len() + TAG_BYTES;
        let field = u16::try_from(length).expect("a piece fits a record");
        records.extend_from_slice(&field.to_le_bytes());
        let start = records.len();
        records.resize(start + length, 0);
        self.cipher
            .write_message(nonce, plain, &mut records[start..])
            .map_err(TransportError::Cipher)?;
        Ok(())
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer")
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

/// Decrypts one direction. It reads exactly the next record, so that unencrypted data that follows stays in
/// the socket.
pub(super) struct Opener {
    cipher: Arc<StatelessTransportState>,
    next: u64,
    /// The arriving record, with room for more.
    record: Vec<u8>,
    arrived: usize,
    frames: FrameBuffer,
}

impl Opener {
    pub(super) fn new(cipher: Arc<StatelessTransportState>) -> Opener {
        Opener {
            cipher,
            next: 0,
            record: Vec::new(),
            arrived: 0,
            frames: FrameBuffer::default(),
        }
    }

    pub(super) fn check_confirmation(
        &mut self,
        record: &[u8; CONFIRMATION_BYTES],
    ) -> Result<(), TransportError> {
        let (field, ciphertext) = record.split_at(LENGTH_BYTES);
        if field != [TAG_BYTES as u8, 0] {
            return Err(TransportError::NotConfirmed);
        }
        let nonce = take_nonce(&mut self.next)?;
        match self.cipher.read_message(nonce, ciphertext, &mut []) {
            Ok(_) => Ok(()),
            Err(_) => Err(TransportError::NotConfirmed),
        }
    }

    /// Returns the next message if it is complete.
    pub(super) fn next<M: Incoming>(&mut self) -> Result<Option<M>, TransportError> {
        Ok(self.frames.next_message()?)
    }

    /// Returns the buffer for the next bytes from the socket: never empty, and never beyond the record.
    pub(super) fn room(&mut self) -> &mut [u8] {
        let wanted = self.wanted();
        // Grows with the received data, whatever the length field contains.
        let end = wanted.min(ROOM_BYTES.max(2 * self.arrived));
        if self.record.len() < end {
            self.record.resize(end, 0);
        }
        &mut self.record[self.arrived..end]
    }

    /// Records how many bytes were read into the room; decrypts the record if it is complete.
    pub(super) fn filled(&mut self, count: usize) -> Result<(), TransportError> {
        self.arrived += count;
        if self.arrived < LENGTH_BYTES {
            return Ok(());
        }
        let wanted = self.wanted();
        let length = wanted - LENGTH_BYTES;
        if length < TAG_BYTES {
            return Err(TransportError::ShortRecord { length });
        }
        if self.arrived < wanted {
            return Ok(());
        }
        let nonce = take_nonce(&mut self.next)?;
        let cipher = &self.cipher;
        let ciphertext = &self.record[LENGTH_BYTES..wanted];
        let opened = self.frames.push_with(length - TAG_BYTES, |plain| {
            cipher.read_message(nonce, ciphertext, plain)
        });
        opened.map_err(|_| TransportError::Forged)?;
        self.arrived = 0;
        Ok(())
    }

    /// Returns whether the stream may end here, or continue in another form.
    pub(super) fn is_between_messages(&self) -> bool {
        self.arrived == 0 && self.frames.is_between_frames()
    }

    /// Returns the number of allocated bytes.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.record.capacity() + self.frames.capacity()
    }

    /// Returns the length of the arriving record with its field, or of the field until that is complete.
    fn wanted(&self) -> usize {
        if self.arrived < LENGTH_BYTES {
            return LENGTH_BYTES;
        }
        LENGTH_BYTES + usize::from(u16::from_le_bytes([self.record[0], self.record[1]]))
    }
}

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opener")
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

fn take_nonce(next: &mut u64) -> Result<u64, TransportError> {
    if *next >= RECORDS_MAX {
        return Err(TransportError::KeyExhausted);
    }
    let nonce = *next;
    *next += 1;
    Ok(nonce)
}
