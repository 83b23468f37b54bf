//! Unique random numbers.

use std::io;

/// Returns a random number for unique names: submissions, chains, saves.
pub fn random_u128() -> io::Result<u128> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(u128::from_le_bytes(bytes))
}
