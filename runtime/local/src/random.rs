//! Numbers that nobody else has drawn.
//!
//! Owns how they are had from the system. Does not own what they name.

use std::io;

/// For what is named once in the world: submissions, chains, saves.
pub fn random_u128() -> io::Result<u128> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(u128::from_le_bytes(bytes))
}
