//! Computes the digests that name blobs.

use std::io::{self, BufReader, Read};

use napreduce_protocol::Digest;
use sha2::{Digest as _, Sha256};

/// Large enough to make reading cheap compared to hashing.
const READ_BYTES: usize = 256 << 10;

/// Reads to the end; returns the SHA-256 and the number of bytes.
pub(crate) fn digest_of(source: impl Read) -> io::Result<(Digest, u64)> {
    let mut hasher = Sha256::new();
    let length = io::copy(
        &mut BufReader::with_capacity(READ_BYTES, source),
        &mut hasher,
    )?;
    Ok((Digest(hasher.finalize().into()), length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_of_bytes_is_sha_256() {
        let (digest, length) = digest_of(&b"abc"[..]).expect("memory can be read");
        // The example of the standard.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!((digest.to_string().as_str(), length), (expected, 3));
    }
}
