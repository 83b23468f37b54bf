//! The compressions of Avro blocks.

use flate2::read::DeflateDecoder;

use crate::content::{ContentError, read_up_to};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    Null,
    Deflate,
    #[cfg(feature = "zstd")]
    Zstandard,
    #[cfg(feature = "snappy")]
    Snappy,
    #[cfg(feature = "bzip2")]
    Bzip2,
    #[cfg(feature = "xz")]
    Xz,
}

/// Codecs that need a feature, with the feature.
const FEATURES: [(&[u8], &str); 4] = [
    (b"zstandard", "zstd"),
    (b"snappy", "snappy"),
    (b"bzip2", "bzip2"),
    (b"xz", "xz"),
];

impl Codec {
    pub(super) fn of(name: &[u8]) -> Result<Codec, String> {
        match name {
            b"null" => Ok(Codec::Null),
            b"deflate" => Ok(Codec::Deflate),
            #[cfg(feature = "zstd")]
            b"zstandard" => Ok(Codec::Zstandard),
            #[cfg(feature = "snappy")]
            b"snappy" => Ok(Codec::Snappy),
            #[cfg(feature = "bzip2")]
            b"bzip2" => Ok(Codec::Bzip2),
            #[cfg(feature = "xz")]
            b"xz" => Ok(Codec::Xz),
            other => {
                let name = String::from_utf8_lossy(other);
                Err(match FEATURES.iter().find(|(codec, _)| *codec == other) {
                    Some((_, feature)) => format!(
                        "its blocks are compressed with {name}; build this program with the feature {feature} of napreduce"
                    ),
                    None => format!(
                        "its blocks are compressed with {name:?}, which is not supported; write it with deflate or zstandard"
                    ),
                })
            }
        }
    }

    /// Decompresses a block, at most `limit` bytes.
    pub(super) fn decompress(self, stored: Vec<u8>, limit: usize) -> Result<Vec<u8>, ContentError> {
        match self {
            Codec::Null => Ok(stored),
            Codec::Deflate => read_up_to(DeflateDecoder::new(&stored[..]), limit),
            #[cfg(feature = "zstd")]
            Codec::Zstandard => crate::content::zstd(&stored, limit),
            #[cfg(feature = "snappy")]
            Codec::Snappy => snappy(&stored, limit),
            #[cfg(feature = "bzip2")]
            Codec::Bzip2 => read_up_to(bzip2::bufread::MultiBzDecoder::new(&stored[..]), limit),
            #[cfg(feature = "xz")]
            Codec::Xz => read_up_to(crate::decode::xz_in_memory(&stored, limit), limit),
        }
    }
}

/// Decompresses raw snappy data, which ends with the checksum of its content.
#[cfg(feature = "snappy")]
fn snappy(stored: &[u8], limit: usize) -> Result<Vec<u8>, ContentError> {
    let invalid = |error: snap::Error| ContentError::Invalid(error.to_string());
    let Some((compressed, sum)) = stored.split_last_chunk::<4>() else {
        return Err(ContentError::Invalid(
            "a block is shorter than its checksum".to_owned(),
        ));
    };
    if snap::raw::decompress_len(compressed).map_err(invalid)? > limit {
        return Err(ContentError::TooLarge);
    }
    let content = snap::raw::Decoder::new()
        .decompress_vec(compressed)
        .map_err(invalid)?;
    if crc32fast::hash(&content) != u32::from_be_bytes(*sum) {
        return Err(ContentError::Invalid(
            "a block does not match its checksum".to_owned(),
        ));
    }
    Ok(content)
}
