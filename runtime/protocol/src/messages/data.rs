//! Messages on a data connection to a worker's data server, from reduces, other workers and the coordinator.
//! The first message of each side negotiates encryption, which selects `Blocks` or `Chunk`. Items are
//! requested by number, never by path.
//!
//! ```text
//! client                                        server
//!   Open{encrypt}                          ->   Opened{encrypted} | Busy{millis} | Refused
//!   Fetch{partition, items}, Grant{bytes}  ->   for each item, in this order:
//!   Grant{bytes}, as it is consumed               Segment{extent}, then blocks within the credit, in pieces:
//!                                                   Blocks{length} and that many bytes, or Chunk(bytes)
//!                                                 or Unavailable{reason}, or Busy{millis} and the end
//!   ReadLog{..}                            ->   Log{..} | LogUnavailable{reason}
//! ```
//!
//! A busy server is not an error: the client retries. Protocol violations are answered by `Refused`, and the
//! connection is closed.

use std::fmt;

use napreduce_engine::AttemptId;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::summaries::LogStream;

/// The most segments per request.
pub const FETCH_ITEMS_MAX: usize = 1024;
/// The most unused credit in bytes.
pub const CREDIT_BYTES_MAX: u64 = 256 << 20;
/// The most payload per message in bytes.
pub const PIECE_BYTES_MAX: u64 = 1 << 20;

/// A message to a data server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToDataServer {
    /// The first message: whether the client requires encrypted payload. The server may require it, too.
    Open { encrypt: bool },
    /// Requests one partition of the outputs of several map attempts.
    Fetch {
        partition: u32,
        items: Vec<FetchItem>,
    },
    /// Adds credit for blocks, in bytes.
    Grant { bytes: u64 },
    /// Requests a piece of an attempt's log.
    ReadLog {
        attempt: AttemptId,
        stream: LogStream,
        offset: u64,
        length: u32,
    },
}

/// A requested segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchItem {
    pub attempt: AttemptId,
    /// The first missing block, counted in the partition.
    pub from_block: u64,
}

/// A message from a data server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromDataServer {
    /// Both sides continue in the negotiated form.
    Opened { encrypted: bool },
    /// The server refuses and closes the connection.
    Refused { reason: String },
    /// The server has no room for the connection or for a file; the client should retry after this time. It
    /// closes the connection.
    Busy { millis: u32 },
    /// The requested blocks follow, as described by this `PartitionExtent`.
    Segment {
        attempt: AttemptId,
        partition: u32,
        from_block: u64,
        extent: Payload,
    },
    /// This many bytes of blocks follow, outside any message.
    Blocks { length: u32 },
    /// Bytes of blocks.
    Chunk(Payload),
    /// The segment is not available; the next item follows.
    Unavailable {
        attempt: AttemptId,
        partition: u32,
        /// Whether it is missing or damaged for good; otherwise it is temporarily unreadable.
        gone: bool,
        reason: String,
    },
    /// A piece of a log, shorter than requested only at the end; `length` is the log's current length.
    Log {
        attempt: AttemptId,
        stream: LogStream,
        offset: u64,
        length: u64,
        bytes: Payload,
    },
    LogUnavailable {
        attempt: AttemptId,
        stream: LogStream,
        reason: String,
    },
}

/// Bytes that are encoded as a block instead of one by one.
#[derive(Clone, PartialEq, Eq)]
pub struct Payload(pub Vec<u8>);

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({} bytes)", self.0.len())
    }
}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Payload, D::Error> {
        deserializer.deserialize_byte_buf(PayloadVisitor)
    }
}

struct PayloadVisitor;

impl<'de> Visitor<'de> for PayloadVisitor {
    type Value = Payload;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes")
    }

    fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Result<Payload, E> {
        Ok(Payload(bytes))
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Payload, E> {
        Ok(Payload(bytes.to_vec()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Payload, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = sequence.next_element()? {
            bytes.push(byte);
        }
        Ok(Payload(bytes))
    }
}
