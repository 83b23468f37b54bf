//! Blocks of container files that are decompressed as a whole, up to a limit.

use std::io::Read;

use crate::bytes::ReadError;

/// The reason why a block has no content.
#[derive(Debug)]
pub(crate) enum ContentError {
    /// The content has more bytes than the limit.
    TooLarge,
    /// The error of the decoder.
    Invalid(String),
}

impl ContentError {
    /// `what` is too large at `offset`, or its bytes are not valid there; `before` begins that sentence.
    #[cold]
    pub(crate) fn at(self, offset: u64, what: &str, before: &str) -> ReadError {
        match self {
            ContentError::TooLarge => ReadError::TooLarge { offset, what: what.to_owned() },
            ContentError::Invalid(reason) => {
                ReadError::Damaged { offset, reason: format!("{before}{reason}") }
            }
        }
    }
}

/// All bytes that `decoder` gives, at most `limit`.
pub(crate) fn read_up_to(decoder: impl Read, limit: usize) -> Result<Vec<u8>, ContentError> {
    let mut content = Vec::new();
    let read = decoder.take(limit as u64 + 1).read_to_end(&mut content);
    read.map_err(|error| ContentError::Invalid(error.to_string()))?;
    if content.len() > limit { Err(ContentError::TooLarge) } else { Ok(content) }
}

/// The content of zstd data.
#[cfg(feature = "zstd")]
pub(crate) fn zstd(stored: &[u8], limit: usize) -> Result<Vec<u8>, ContentError> {
    let decoder = ruzstd::decoding::StreamingDecoder::new(stored);
    read_up_to(decoder.map_err(|error| ContentError::Invalid(error.to_string()))?, limit)
}
