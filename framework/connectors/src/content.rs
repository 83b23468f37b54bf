//! Decompression of whole blocks of container files, with a size limit.

#[cfg(feature = "zstd")]
use std::fmt::Display;
use std::io::Read;

#[cfg(feature = "zstd")]
use ruzstd::decoding::StreamingDecoder;

use crate::bytes::ReadError;
#[cfg(feature = "zstd")]
use crate::compression::skippable_bytes;

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
            ContentError::TooLarge => ReadError::TooLarge {
                offset,
                what: what.to_owned(),
            },
            ContentError::Invalid(reason) => ReadError::Damaged {
                offset,
                reason: format!("{before}{reason}"),
            },
        }
    }
}

/// Reads all bytes of `decoder`, at most `limit`.
pub(crate) fn read_up_to(decoder: impl Read, limit: usize) -> Result<Vec<u8>, ContentError> {
    let mut content = Vec::new();
    let read = decoder.take(limit as u64 + 1).read_to_end(&mut content);
    read.map_err(|error| ContentError::Invalid(error.to_string()))?;
    if content.len() > limit {
        Err(ContentError::TooLarge)
    } else {
        Ok(content)
    }
}

/// Decompresses all frames of zstd data.
#[cfg(feature = "zstd")]
pub(crate) fn zstd(stored: &[u8], limit: usize) -> Result<Vec<u8>, ContentError> {
    let invalid = |error: &dyn Display| ContentError::Invalid(error.to_string());
    let mut content = Vec::new();
    let mut rest = stored;
    while !rest.is_empty() {
        if let Some(skipped) = skippable_bytes(rest) {
            let behind = usize::try_from(skipped)
                .ok()
                .and_then(|skipped| rest.get(skipped..));
            rest = behind.ok_or_else(|| invalid(&"a skippable frame ends early"))?;
            continue;
        }
        let mut decoder = StreamingDecoder::new(&mut rest).map_err(|error| invalid(&error))?;
        content.append(&mut read_up_to(&mut decoder, limit - content.len())?);
        let frame = decoder.into_frame_decoder();
        let written = frame.get_checksum_from_data();
        if written.is_some() && written != frame.get_calculated_checksum() {
            return Err(invalid(&"a frame does not match its checksum"));
        }
    }
    Ok(content)
}
