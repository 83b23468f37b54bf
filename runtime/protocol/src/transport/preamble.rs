//! The first bytes of a connection, in the clear: who speaks, which version, in which role.
//!
//! Owns their layout and the version of everything that travels between processes of a cluster. Does not own reading and
//! writing them (`connection`, `blocking`).

use super::error::TransportError;

/// Version of the preamble, the handshake, the records and all messages inside. Raise it when any of them changes.
pub const NETWORK_VERSION: u16 = 4;

pub(super) const MAGIC: [u8; 4] = *b"NAPR";

/// What the client sends: magic, version (little-endian), role.
pub(super) const GREETING_BYTES: usize = 7;
/// What the server answers: magic and version.
pub(super) const ANSWER_BYTES: usize = 6;

/// What a client of a connection is to its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// A worker at the coordinator: `FromWorker` and `ToWorker`.
    Worker,
    /// Whoever submits or asks, at the coordinator: `ToCoordinator` and `FromCoordinator`.
    Client,
    /// Whoever fetches map output or logs, at a worker.
    Data,
}

impl Role {
    fn code(self) -> u8 {
        match self {
            Role::Worker => 1,
            Role::Client => 2,
            Role::Data => 3,
        }
    }

    fn from_code(code: u8) -> Result<Role, TransportError> {
        match code {
            1 => Ok(Role::Worker),
            2 => Ok(Role::Client),
            3 => Ok(Role::Data),
            code => Err(TransportError::UnknownRole { code }),
        }
    }
}

pub(super) fn greeting(role: Role) -> [u8; GREETING_BYTES] {
    let [a, b, c, d] = MAGIC;
    let [low, high] = NETWORK_VERSION.to_le_bytes();
    [a, b, c, d, low, high, role.code()]
}

pub(super) fn answer() -> [u8; ANSWER_BYTES] {
    let [a, b, c, d] = MAGIC;
    let [low, high] = NETWORK_VERSION.to_le_bytes();
    [a, b, c, d, low, high]
}

/// The role a client asks for.
pub(super) fn check_greeting(greeting: &[u8; GREETING_BYTES]) -> Result<Role, TransportError> {
    let [start @ .., code] = greeting;
    check_answer(start)?;
    Role::from_code(*code)
}

pub(super) fn check_answer(answer: &[u8; ANSWER_BYTES]) -> Result<(), TransportError> {
    let [magic @ .., low, high] = answer;
    if *magic != MAGIC {
        return Err(TransportError::NotNapreduce { got: magic.to_vec() });
    }
    let theirs = u16::from_le_bytes([*low, *high]);
    if theirs == NETWORK_VERSION { Ok(()) } else { Err(TransportError::OtherVersion { theirs }) }
}
