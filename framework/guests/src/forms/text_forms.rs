//! Reading and writing of plans and reports as JSON, with a check of the format version.

use std::fmt::Display;
use std::str::FromStr;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serializer};

/// The error for a text that is not a valid plan or report.
#[derive(Debug, thiserror::Error)]
pub enum GuestTextError {
    #[error("invalid JSON: {0}")]
    Unreadable(#[from] serde_json::Error),
    #[error("its format is {found:?}, but this program reads {}", expected.join(" and "))]
    OtherFormat {
        found: String,
        expected: &'static [&'static str],
    },
}

/// Reads JSON in one of these formats.
pub(super) fn read<T: DeserializeOwned>(
    text: &[u8],
    expected: &'static [&'static str],
) -> Result<T, GuestTextError> {
    #[derive(Deserialize)]
    struct Versioned {
        format: String,
    }
    let Versioned { format: found } = serde_json::from_slice(text)?;
    if expected.contains(&found.as_str()) {
        Ok(serde_json::from_slice(text)?)
    } else {
        Err(GuestTextError::OtherFormat { found, expected })
    }
}

pub(super) fn serialize<T: Display, S: Serializer>(
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

pub(super) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    String::deserialize(deserializer)?
        .parse()
        .map_err(serde::de::Error::custom)
}

/// A digest in hexadecimal, since some JSON readers lose precision of large numbers.
pub(super) mod hexadecimal {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(digest: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{digest:016x}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        u64::from_str_radix(&String::deserialize(deserializer)?, 16)
            .map_err(serde::de::Error::custom)
    }
}

/// Encoded keys in hexadecimal.
pub(super) mod keys {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(keys: &[Vec<u8>], serializer: S) -> Result<S::Ok, S::Error> {
        let text = |key: &Vec<u8>| {
            key.iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        };
        serializer.collect_seq(keys.iter().map(text))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Vec<u8>>, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        texts
            .iter()
            .map(|text| {
                key(text).ok_or_else(|| serde::de::Error::custom(format!("invalid key {text:?}")))
            })
            .collect()
    }

    fn key(text: &str) -> Option<Vec<u8>> {
        let pairs = text.as_bytes().chunks(2);
        let byte = |pair: &[u8]| {
            let text = std::str::from_utf8(pair)
                .ok()
                .filter(|text| text.len() == 2 && !text.starts_with('+'))?;
            u8::from_str_radix(text, 16).ok()
        };
        pairs.map(byte).collect()
    }
}
