//! A secret: proof that two processes belong to one cluster, or that a task belongs to its job. Its file and
//! the keys derived from it are in `napreduce-cluster`.

use std::{fmt, io};

use zeroize::Zeroizing;

pub const SECRET_BYTES: usize = 32;

/// A shared secret. Wiped from memory when dropped.
#[derive(Clone)]
pub struct Secret(Zeroizing<[u8; SECRET_BYTES]>);

impl Secret {
    /// Generates a secret with the system's randomness.
    pub fn generate() -> io::Result<Secret> {
        let mut bytes = Zeroizing::new([0; SECRET_BYTES]);
        getrandom::fill(bytes.as_mut_slice())?;
        Ok(Secret(bytes))
    }

    /// Wraps bytes that were received over a private channel.
    pub fn from_bytes(bytes: [u8; SECRET_BYTES]) -> Secret {
        Secret(Zeroizing::new(bytes))
    }

    pub fn bytes(&self) -> &[u8; SECRET_BYTES] {
        &self.0
    }
}

impl From<Zeroizing<[u8; SECRET_BYTES]>> for Secret {
    fn from(bytes: Zeroizing<[u8; SECRET_BYTES]>) -> Secret {
        Secret(bytes)
    }
}

/// Hides the secret.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}
