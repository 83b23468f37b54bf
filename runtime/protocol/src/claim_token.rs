//! The token that identifies a job's claim on its output directory.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Random per claim: a job that reads another token has lost the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ClaimToken(u64);

impl From<u64> for ClaimToken {
    fn from(token: u64) -> ClaimToken {
        ClaimToken(token)
    }
}

impl fmt::Display for ClaimToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for ClaimToken {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<ClaimToken, Self::Err> {
        u64::from_str_radix(text, 16).map(ClaimToken)
    }
}

/// Text in human-readable formats, since JSON numbers may lose precision; a number in messages.
impl Serialize for ClaimToken {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            self.0.serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for ClaimToken {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ClaimToken, D::Error> {
        if deserializer.is_human_readable() {
            String::deserialize(deserializer)?
                .parse()
                .map_err(serde::de::Error::custom)
        } else {
            u64::deserialize(deserializer).map(ClaimToken)
        }
    }
}
