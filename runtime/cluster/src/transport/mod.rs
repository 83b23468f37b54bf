//! Authenticated, encrypted connections between the parts of a cluster. Before authentication, handshakes are
//! limited in time and number. Afterwards, callers limit silence.
//!
//! ```text
//!   client                                              server
//!   preamble, first Noise message  ------------------>  checks magic, version, role and secret
//!   checks version and secret      <------------------  preamble, second Noise message
//!   confirmation (an empty record) ------------------>  proves that this is not a replay
//!   records                        <----------------->  records
//! ```
//!
//! A record is a length (u16, little-endian) and an encrypted piece of the stream of frames. Lengths before
//! the confirmation are fixed, so a stranger has none to lie about.

pub mod blocking;
mod connection;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod handshake;
mod listener;
mod preamble;
mod records;
mod secret;
#[cfg(test)]
mod tests;
mod transfer;

use std::time::Duration;

pub use connection::{Connection, MessageReceiver, MessageSender, connect};
pub use error::TransportError;
pub use listener::{Incoming, Listener};
pub use preamble::Role;
pub use secret::{SecretError, job_token, read_or_create_secret, read_secret};
pub(crate) use transfer::{SILENCE_MAX, TransferClock};

/// Maximum duration of a handshake, from the first byte to the last.
pub const HANDSHAKE_DEADLINE: Duration = Duration::from_secs(5);
