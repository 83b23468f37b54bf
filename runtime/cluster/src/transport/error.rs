//! Errors of connections; each message names the cause and a remedy.

use std::io;
use std::time::Duration;

use napreduce_protocol::{NETWORK_VERSION, WireError};
use thiserror::Error;

use super::preamble::MAGIC;

/// An error of a connection.
#[derive(Debug, Error)]
pub enum TransportError {
    #[error(
        "cannot connect to {address}: {source}; check the address and whether the process is running"
    )]
    Unreachable { address: String, source: io::Error },
    #[error("cannot listen on {address}: {source}; choose another address or port")]
    CannotListen { address: String, source: io::Error },
    #[error(
        "the peer is not napreduce: its first bytes are `{}` instead of `{}`; check which program uses this address",
        .got.escape_ascii(), MAGIC.escape_ascii()
    )]
    NotNapreduce { got: Vec<u8> },
    #[error(
        "network protocol version mismatch: the peer has {theirs}, this program has {NETWORK_VERSION}; \
         run the same napreduce on both sides"
    )]
    OtherVersion { theirs: u16 },
    #[error("unknown role {code}; run the same napreduce on both sides")]
    UnknownRole { code: u8 },
    #[error("the peer has another secret; give it a copy of the cluster's secret file")]
    OtherSecret,
    /// The server closed the connection after it had sent its version.
    #[error("the server refused our secret; use a copy of the cluster's secret file")]
    SecretRefused,
    #[error("unconfirmed handshake: it is damaged, or a replay of an earlier one")]
    NotConfirmed,
    #[error("the peer closed the connection before sending {awaited}")]
    ClosedEarly { awaited: &'static str },
    #[error("timed out waiting for {awaited} ({deadline:?})")]
    TimedOut {
        awaited: &'static str,
        deadline: Duration,
    },
    #[error("too many pending handshakes (limit {limit}); dropped the oldest")]
    Crowded { limit: usize },
    #[error("a record of {length} bytes is too short to be authentic")]
    ShortRecord { length: usize },
    #[error("a record is damaged or not from the peer")]
    Forged,
    #[error("the connection's key has reached its record limit; connect again")]
    KeyExhausted,
    #[error("the stream ended inside a message")]
    CutShort,
    #[error("cannot change the connection inside a message")]
    InsideMessage,
    #[error("cannot encrypt: {0}")]
    Cipher(snow::Error),
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error("the connection broke: {0}")]
    Io(#[from] io::Error),
}
