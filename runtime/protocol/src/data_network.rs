//! A task process's access to data servers. Sent over the control socket: in the environment or on a command
//! line, other users could read the token.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::secret::Secret;

/// Access to data servers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DataNetwork {
    /// The job's token, which grants access to the outputs of its own maps only.
    #[serde(with = "secret")]
    pub token: Secret,
    /// Whether blocks are encrypted.
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

/// How long to retry an unreachable peer before its outputs are reported lost. Time while this process was
/// stopped does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchLimits {
    /// Tries in a row without progress.
    pub tries_max: u32,
    /// Time limit for these tries, after at least three.
    pub spent_max: Duration,
    /// Time limit to connect, and of silence on a connection.
    pub silence_max: Duration,
    /// The delay after the first failure; doubled after each further one.
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

    pub(super) fn serialize<S: Serializer>(
        secret: &Secret,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        secret.bytes().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Secret, D::Error> {
        Deserialize::deserialize(deserializer).map(Secret::from_bytes)
    }
}
