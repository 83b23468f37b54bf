//! Messages as bytes: a frame is a length (u32, little-endian) and that many bytes of bincode.
//!
//! This is the only use of bincode. Both ends have the same version, so the format carries no schema.

use std::io::{self, Read, Write};

use bincode::config::{Configuration, Limit, LittleEndian, Varint};
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// The longest frame in bytes: the inputs of a reduce over some hundred thousand maps fit.
const FRAME_BYTES_MAX: usize = 64 << 20;
const LENGTH_BYTES: usize = 4;

/// Memory that a buffer keeps between frames.
const BUFFER_BYTES_KEPT: usize = 64 << 10;

/// Variable-length integers keep progress messages at a few bytes.
type Format<const CLAIM_BYTES_MAX: usize> =
    Configuration<LittleEndian, Varint, Limit<CLAIM_BYTES_MAX>>;

const fn format<const CLAIM_BYTES_MAX: usize>() -> Format<CLAIM_BYTES_MAX> {
    bincode::config::standard().with_limit::<CLAIM_BYTES_MAX>()
}

/// Why a message could not be encoded or decoded.
#[derive(Debug, Error)]
pub enum WireError {
    #[error(
        "a message of {length} bytes is longer than the {FRAME_BYTES_MAX} bytes a frame may have"
    )]
    TooLong { length: usize },
    #[error("a frame of {length} bytes holds a message of {used} bytes")]
    Trailing { length: usize, used: usize },
    #[error("cannot decode a frame of {length} bytes: {reason}")]
    Undecodable { length: usize, reason: String },
    #[error("cannot encode a message: {0}")]
    Unencodable(String),
    #[error("the stream ended inside a frame")]
    CutShort,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A message that can be sent.
///
/// The implementation for a large message writes the method out. Its body is then compiled in this crate, once, instead of in
/// each crate that sends the message.
pub trait Outgoing: Serialize {
    /// Appends the bytes of the message.
    ///
    /// # Errors
    /// Fails if the message contains what bincode cannot encode.
    fn append_payload(&self, frame: &mut Vec<u8>) -> Result<(), WireError> {
        serialize(self, frame)
    }
}

/// A message that can be received; implemented in the same way as [`Outgoing`].
pub trait Incoming: DeserializeOwned {
    /// Decodes the bytes of a frame; the message must use all of them.
    ///
    /// # Errors
    /// Fails if the bytes are not those of such a message.
    fn from_payload(payload: &[u8]) -> Result<Self, WireError> {
        deserialize(payload)
    }
}

impl<M: Outgoing + ?Sized> Outgoing for &M {
    fn append_payload(&self, frame: &mut Vec<u8>) -> Result<(), WireError> {
        (**self).append_payload(frame)
    }
}

/// Encodes a message as one frame.
pub fn encode<T: Outgoing>(message: &T) -> Result<Vec<u8>, WireError> {
    let mut frame = Vec::new();
    encode_onto(&mut frame, message)?;
    Ok(frame)
}

/// Appends a message as one frame; appends nothing on an error.
pub fn encode_onto<T: Outgoing>(frames: &mut Vec<u8>, message: &T) -> Result<(), WireError> {
    let start = frames.len();
    let encoded = try_encode_onto(frames, message);
    if encoded.is_err() {
        frames.truncate(start);
    }
    encoded
}

fn try_encode_onto<T: Outgoing>(frames: &mut Vec<u8>, message: &T) -> Result<(), WireError> {
    let start = frames.len();
    frames.extend_from_slice(&[0; LENGTH_BYTES]);
    message.append_payload(frames)?;
    let length = frames.len() - start - LENGTH_BYTES;
    let field = u32::try_from(length)
        .ok()
        .filter(|_| length <= FRAME_BYTES_MAX);
    let field = field.ok_or(WireError::TooLong { length })?;
    frames[start..start + LENGTH_BYTES].copy_from_slice(&field.to_le_bytes());
    Ok(())
}

/// Appends the bytes of a message.
pub(crate) fn serialize<T: Serialize + ?Sized>(
    message: &T,
    frame: &mut Vec<u8>,
) -> Result<(), WireError> {
    bincode::serde::encode_into_std_write(message, frame, format::<FRAME_BYTES_MAX>())
        .map_err(|error| WireError::Unencodable(error.to_string()))?;
    Ok(())
}

/// Decodes the message of a frame; it must use all bytes.
///
/// bincode allocates the claimed length of a string before it reads the string, up to its limit. It counts 8
/// bytes for every number, so the limit is 8 times the longest frame. Short frames, which are nearly all,
/// have a limit of their own. Each limit compiles the code of all messages once more.
pub(crate) fn deserialize<T: DeserializeOwned>(payload: &[u8]) -> Result<T, WireError> {
    const SHORT: usize = 64 << 10;
    if payload.len() <= SHORT {
        decode_within(payload, format::<{ 8 * SHORT }>())
    } else {
        decode_within(payload, format::<{ 8 * FRAME_BYTES_MAX }>())
    }
}

fn decode_within<T: DeserializeOwned, const CLAIM_BYTES_MAX: usize>(
    payload: &[u8],
    format: Format<CLAIM_BYTES_MAX>,
) -> Result<T, WireError> {
    let length = payload.len();
    let (message, used) = bincode::serde::decode_from_slice(payload, format).map_err(|error| {
        WireError::Undecodable {
            length,
            reason: error.to_string(),
        }
    })?;
    if used != length {
        return Err(WireError::Trailing { length, used });
    }
    Ok(message)
}

/// Returns the length of a frame from its first bytes; fails beyond the limit.
fn length(field: [u8; LENGTH_BYTES]) -> Result<usize, WireError> {
    let length = usize::try_from(u32::from_le_bytes(field)).unwrap_or(usize::MAX);
    if length > FRAME_BYTES_MAX {
        Err(WireError::TooLong { length })
    } else {
        Ok(length)
    }
}

/// Writes one message, blocking.
pub fn write_message<T: Outgoing>(mut stream: impl Write, message: &T) -> Result<(), WireError> {
    Ok(stream.write_all(&encode(message)?)?)
}

/// Reads one message, blocking; `None` when the stream ended between two frames.
pub fn read_message<T: Incoming>(mut stream: impl Read) -> Result<Option<T>, WireError> {
    let mut field = [0; LENGTH_BYTES];
    let mut have = 0;
    while have < LENGTH_BYTES {
        match stream.read(&mut field[have..]) {
            Ok(0) if have == 0 => return Ok(None),
            Ok(0) => return Err(WireError::CutShort),
            Ok(count) => have += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    let length = length(field)?;
    // Grows with received data: a false length allocates nothing.
    let mut payload = Vec::new();
    let read = stream.take(length as u64).read_to_end(&mut payload)?;
    if read < length {
        return Err(WireError::CutShort);
    }
    T::from_payload(&payload).map(Some)
}

/// A buffer of received bytes, cut into messages, for readers that must not block.
#[derive(Debug, Default)]
pub struct FrameBuffer {
    bytes: Vec<u8>,
    taken: usize,
}

impl FrameBuffer {
    /// Adds bytes that arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds `length` bytes written by `fill`; adds none if it fails.
    pub fn push_with<T, E>(
        &mut self,
        length: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<T, E>,
    ) -> Result<T, E> {
        self.push(&[]);
        let start = self.bytes.len();
        self.bytes.resize(start + length, 0);
        let filled = fill(&mut self.bytes[start..]);
        if filled.is_err() {
            self.bytes.truncate(start);
        }
        filled
    }

    /// Returns the next message if it is complete.
    pub fn next_message<T: Incoming>(&mut self) -> Result<Option<T>, WireError> {
        let waiting = &self.bytes[self.taken..];
        let Some((field, rest)) = waiting.split_first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let length = length(*field)?;
        let Some(payload) = rest.get(..length) else {
            return Ok(None);
        };
        let message = T::from_payload(payload);
        self.taken += LENGTH_BYTES + length;
        if self.is_between_frames() {
            self.push(&[]);
            self.bytes.shrink_to(BUFFER_BYTES_KEPT);
        }
        message.map(Some)
    }

    /// Allocated bytes.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Takes up to `most` of the waiting bytes, which are not part of a message.
    pub fn take_raw(&mut self, most: usize) -> &[u8] {
        let start = self.taken;
        self.taken = self.bytes.len().min(start + most);
        &self.bytes[start..self.taken]
    }

    /// Whether the stream may end here: no partial frame is waiting.
    pub fn is_between_frames(&self) -> bool {
        self.taken == self.bytes.len()
    }
}
