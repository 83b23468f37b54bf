//! Errors of connections; each message names the cause and a remedy.

use std::io;
use std::time::Duration;

use napreduce_protocol::{NETWORK_VERSION, WireError};
use thiserror::Error;

use super::preamble::MAGIC;

/// Why there is no connection, or none any more.
#[derive(Debug, Error)]
pub enum TransportError {
    #[error("cannot connect to {address}: {source}; is it running, and is that its address?")]
    Unreachable { address: String, source: io::Error },
    #[error("cannot listen on {address}: {source}; choose another address or port")]
    CannotListen { address: String, source: io::Error },
    #[error(
        "the peer does not speak napreduce: it began with `{}` instead of `{}`; check which program uses this address",
        .got.escape_ascii(), MAGIC.escape_ascii()
    )]
    NotNapreduce { got: Vec<u8> },
    #[error(
        "the peer speaks version {theirs} of the network protocol, this program version {NETWORK_VERSION}; \
         run the same napreduce on both sides"
    )]
    OtherVersion { theirs: u16 },
    #[error("the peer asks for role {code}, which there is not; run the same napreduce on both sides")]
    UnknownRole { code: u8 },
    #[error("the peer's secret is not this cluster's; give it a copy of the cluster's secret file")]
    OtherSecret,
    /// It has said so: a server that merely dies does not name its version first.
    #[error(
        "the server ended the handshake when it saw our secret: it is not this cluster's; \
         use a copy of the cluster's secret file"
    )]
    SecretRefused,
    #[error("the peer did not prove that it is there: a recording of an earlier handshake, or a damaged one")]
    NotConfirmed,
    #[error("the peer closed the connection while we waited for {awaited}")]
    ClosedEarly { awaited: &'static str },
    #[error("the peer was silent: {awaited} did not come within {deadline:?}")]
    Silent { awaited: &'static str, deadline: Duration },
    #[error("too many handshakes are pending ({limit}); this one had taken the longest")]
    Crowded { limit: usize },
    #[error("a record of {length} bytes is too short to be authentic")]
    ShortRecord { length: usize },
    #[error("a record was damaged, or is not the peer's")]
    Forged,
    #[error("the connection has carried as much as one key may; connect again")]
    KeyWorn,
    #[error("the stream ended inside a message")]
    CutShort,
    #[error("the connection cannot change hands inside a message")]
    InsideMessage,
    #[error("cannot encrypt: {0}")]
    Cipher(snow::Error),
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error("the connection broke: {0}")]
    Io(#[from] io::Error),
}
