//! Messages on a data connection: to a worker's data server, from reduces, other workers and the coordinator.
//!
//! Owns the vocabulary and its order. Does not own whether payload is encrypted: that is agreed on with the
//! first message of each side, and `Blocks` or `Chunk` follows from it. What is asked for is named by
//! numbers, never by paths.
//!
//! ```text
//! client                                        server
//!   Open{encrypt}                          ->   Opened{encrypted} | Busy{millis} | Refused
//!   Fetch{partition, items}, Grant{bytes}  ->   for each item, in this order:
//!   Grant{bytes}, as it is consumed               Segment{extent}, then its blocks as far as granted, in pieces:
//!                                                   Blocks{length} and so many bytes as they are, or Chunk(bytes)
//!                                                 or Unavailable{reason}, or Busy{millis} and the end
//!   ReadLog{..}                            ->   Log{..} | LogUnavailable{reason}
//! ```
//!
//! Being busy is no failure: whoever is told so comes back. What breaks these rules is answered by `Refused`,
//! and the connection is closed.

use std::fmt;

use napreduce_engine::AttemptId;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::summaries::LogStream;

/// The most segments that one request names.
pub const FETCH_ITEMS_MAX: usize = 1024;
/// The most bytes that may be granted and not yet sent.
pub const CREDIT_BYTES_MAX: u64 = 256 << 20;
/// The most bytes of payload in one message.
pub const PIECE_BYTES_MAX: u64 = 1 << 20;

/// What is said to a data server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToDataServer {
    /// The first message: whether the client wants payload encrypted. The server may want it, too.
    Open { encrypt: bool },
    /// Wants one partition of the outputs of several map attempts.
    Fetch { partition: u32, items: Vec<FetchItem> },
    /// So many bytes of blocks more may be sent.
    Grant { bytes: u64 },
    /// Wants a piece of what an attempt has printed.
    ReadLog { attempt: AttemptId, stream: LogStream, offset: u64, length: u32 },
}

/// One segment that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchItem {
    pub attempt: AttemptId,
    /// The first block that the client lacks, counted in the partition.
    pub from_block: u64,
}

/// What a data server says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromDataServer {
    /// After this, both sides go on as said.
    Opened {
        encrypted: bool,
    },
    /// The server does not want to, and closes the connection.
    Refused {
        reason: String,
    },
    /// The server has no room for the connection, or for a file, just now: come back after so long. It closes
    /// the connection.
    Busy {
        millis: u32,
    },
    /// The blocks that were asked for follow, as described by this `PartitionExtent`.
    Segment {
        attempt: AttemptId,
        partition: u32,
        from_block: u64,
        extent: Payload,
    },
    /// So many bytes of blocks follow as they are, outside any message.
    Blocks {
        length: u32,
    },
    /// Bytes of blocks.
    Chunk(Payload),
    /// There is no such segment here; the next item follows.
    Unavailable {
        attempt: AttemptId,
        partition: u32,
        /// It is not there, or is damaged, and never will be here again; otherwise it cannot be read
        /// just now.
        gone: bool,
        reason: String,
    },
    /// A piece of a log, shorter than asked for only at the end; the log had `length` bytes then.
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

/// Bytes that are encoded at once, not one by one.
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
