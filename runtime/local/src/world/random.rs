//! Random numbers.

use std::io;
use std::time::Duration;

use napreduce_protocol::jittered_by;

#[cfg(feature = "simulated")]
use super::Node;

/// The source of tokens, identities, key pairs and jitter.
#[derive(Debug, Clone)]
pub struct Random {
    source: Source,
}

#[derive(Debug, Clone)]
enum Source {
    System,
    #[cfg(feature = "simulated")]
    Node(Node),
}

impl Random {
    pub(super) fn system() -> Random {
        Random {
            source: Source::System,
        }
    }

    #[cfg(feature = "simulated")]
    pub(super) fn of_node(node: Node) -> Random {
        Random {
            source: Source::Node(node),
        }
    }

    /// Fills the bytes with random ones.
    ///
    /// # Errors
    /// Fails if the system has no random numbers.
    pub fn fill(&self, bytes: &mut [u8]) -> io::Result<()> {
        match &self.source {
            Source::System => Ok(getrandom::fill(bytes)?),
            #[cfg(feature = "simulated")]
            Source::Node(node) => {
                node.fill(bytes);
                Ok(())
            }
        }
    }

    /// Returns a random number.
    ///
    /// # Errors
    /// Fails if the system has no random numbers.
    pub fn number(&self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.fill(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Returns a random number for unique names: submissions, chains, saves.
    ///
    /// # Errors
    /// Fails if the system has no random numbers.
    pub fn token(&self) -> io::Result<u128> {
        let mut bytes = [0; 16];
        self.fill(&mut bytes)?;
        Ok(u128::from_le_bytes(bytes))
    }

    /// Returns between half of a pause and all of it, so that processes do not try again all at once.
    pub fn jittered(&self, pause: Duration) -> Duration {
        let mut bytes = [0; 4];
        // Without randomness they do, which is harmless.
        let random = match self.fill(&mut bytes) {
            Ok(()) => u32::from_le_bytes(bytes),
            Err(_) => u32::MAX,
        };
        jittered_by(pause, random)
    }
}
