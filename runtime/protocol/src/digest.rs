//! The SHA-256 digest that names a blob.

use std::fmt;
#[cfg(feature = "digest")]
use std::io::{self, Read};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
#[cfg(feature = "digest")]
use sha2::{Digest as _, Sha256};

/// Read size; large enough to make reading cheap compared to hashing.
#[cfg(feature = "digest")]
const READ_BYTES: usize = 256 << 10;

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

/// A digest being computed.
#[cfg(feature = "digest")]
#[derive(Default)]
pub struct Digester(Sha256);

#[cfg(feature = "digest")]
impl Digester {
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

#[cfg(feature = "digest")]
impl Digest {
    /// Reads to the end; returns the digest and the number of bytes.
    pub fn of(mut source: impl Read) -> io::Result<(Digest, u64)> {
        let mut digester = Digester::default();
        let mut buffer = vec![0; READ_BYTES];
        let mut length = 0_u64;
        loop {
            match source.read(&mut buffer) {
                Ok(0) => return Ok((digester.finish(), length)),
                Ok(count) => {
                    digester.update(&buffer[..count]);
                    length += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// The text is not 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a digest; give 64 hexadecimal digits")]
pub struct DigestError(String);

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Digest, DigestError> {
        let wrong = || DigestError(text.chars().take(80).collect());
        let digits: Option<Vec<u32>> = text.chars().map(|character| character.to_digit(16)).collect();
        let digits = digits.filter(|digits| digits.len() == 64).ok_or_else(wrong)?;
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
    fn a_digest_reads_what_it_prints() {
        let digest = Digest(std::array::from_fn(|index| u8::try_from(index * 7).expect("below 256")));
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert_eq!(digest.to_string().len(), 64);
    }

    #[test]
    fn the_digest_is_sha_256() {
        let (digest, length) = Digest::of(&b"abc"[..]).expect("memory can be read");
        // The example of the standard.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!((digest.to_string().as_str(), length), (expected, 3));
        let mut pieces = Digester::default();
        pieces.update(b"a");
        pieces.update(b"bc");
        assert_eq!(pieces.finish(), digest);
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "../../etc/passwd", &"0".repeat(63), &"g".repeat(64), &"0".repeat(65)] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }
}
