//! What a task process needs to reach data servers.
//!
//! Owns the plain data as it comes in the attempt's description: over the control socket, never in the
//! environment or on a command line, where others could read the token. Does not own its use (`fetch`).

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::secret::Secret;

/// How to reach data servers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DataNetwork {
    /// The job's, by which a task may fetch what its job's maps wrote, and nothing else.
    #[serde(with = "secret")]
    pub token: Secret,
    /// Whether blocks are to be encrypted.
    pub encrypt: bool,
    pub limits: FetchLimits,
}

impl PartialEq for DataNetwork {
    fn eq(&self, other: &DataNetwork) -> bool {
        self.token.bytes() == other.token.bytes()
            && (self.encrypt, self.limits) == (other.encrypt, other.limits)
    }
}

impl Eq for DataNetwork {}

/// How long a peer that cannot be reached is tried again before what it holds is reported as lost. Time
/// in which this process was stopped does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchLimits {
    /// Tries in a row without a byte of progress.
    pub tries_max: u32,
    /// Time spent on them; after three tries at least.
    pub spent_max: Duration,
    /// How long a connection may take, and how long a peer may be silent on it.
    pub silence_max: Duration,
    /// The wait after the first failure; doubled after each further one.
    pub back_off: Duration,
}

impl Default for FetchLimits {
    fn default() -> FetchLimits {
        FetchLimits {
            tries_max: 8,
            spent_max: Duration::from_secs(20),
            silence_max: Duration::from_secs(5),
            back_off: Duration::from_millis(100),
        }
    }
}

mod secret {
    use super::{Deserialize, Deserializer, Secret, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(secret: &Secret, serializer: S) -> Result<S::Ok, S::Error> {
        secret.bytes().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> {
        Deserialize::deserialize(deserializer).map(Secret::from_bytes)
    }
}
