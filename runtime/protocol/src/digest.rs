//! The SHA-256 digest that names a blob.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The SHA-256 of a program or side file; prints as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Digest(pub [u8; 32]);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A blob's digest and length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blob {
    pub digest: Digest,
    /// Its length in bytes.
    pub bytes: u64,
}

/// A side file of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SideFile {
    /// Its name for tasks: one component, not `.` or `..`.
    pub name: String,
    pub blob: Blob,
}

/// The text is not 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a digest; give 64 hexadecimal digits")]
pub struct DigestError(String);

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Digest, DigestError> {
        let wrong = || DigestError(text.chars().take(80).collect());
        let digits: Option<Vec<u32>> = text
            .chars()
            .map(|character| character.to_digit(16))
            .collect();
        let digits = digits
            .filter(|digits| digits.len() == 64)
            .ok_or_else(wrong)?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = u8::try_from(pair[0] * 16 + pair[1]).map_err(|_| wrong())?;
        }
        Ok(Digest(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_display_parses_back() {
        let digest = Digest(std::array::from_fn(|index| {
            u8::try_from(index * 7).expect("below 256")
        }));
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert_eq!(digest.to_string().len(), 64);
    }

    #[test]
    fn digest_parse_rejects_other_text() {
        for text in [
            "",
            "../../etc/passwd",
            &"0".repeat(63),
            &"g".repeat(64),
            &"0".repeat(65),
        ] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }
}
