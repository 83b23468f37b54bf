//! Decompression of whole blocks of container files, with a size limit.

use std::io::Read;

use crate::bytes::ReadError;

/// The error for a block that cannot be decompressed.
#[derive(Debug)]
pub(crate) enum ContentError {
    /// The content exceeds the limit.
    TooLarge,
    /// The error of the decoder.
    Invalid(String),
}

impl ContentError {
    /// Adds the position; `what` names the block, and `before` begins the reason.
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

/// Reads all bytes of `decoder`, at most `limit`.
pub(crate) fn read_up_to(decoder: impl Read, limit: usize) -> Result<Vec<u8>, ContentError> {
    let mut content = Vec::new();
    let read = decoder.take(limit as u64 + 1).read_to_end(&mut content);
    read.map_err(|error| ContentError::Invalid(error.to_string()))?;
    if content.len() > limit { Err(ContentError::TooLarge) } else { Ok(content) }
}

/// Decompresses zstd data.
#[cfg(feature = "zstd")]
pub(crate) fn zstd(stored: &[u8], limit: usize) -> Result<Vec<u8>, ContentError> {
    let decoder = ruzstd::decoding::StreamingDecoder::new(stored);
    read_up_to(decoder.map_err(|error| ContentError::Invalid(error.to_string()))?, limit)
}
