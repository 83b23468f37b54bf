//! The compressions of SequenceFiles, named by Hadoop's classes.

use flate2::bufread::{MultiGzDecoder, ZlibDecoder};

use crate::content::{ContentError, read_up_to};
#[cfg(any(feature = "lz4", feature = "snappy"))]
use crate::decode::HadoopBlocks;

/// The compression of values or blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    Default,
    Gzip,
    #[cfg(feature = "zstd")]
    Zstandard,
    #[cfg(feature = "bzip2")]
    Bzip2,
    #[cfg(feature = "lz4")]
    Lz4,
    #[cfg(feature = "snappy")]
    Snappy,
}

const PACKAGE: &str = "org.apache.hadoop.io.compress.";
/// Classes that need a feature, with the feature.
const FEATURES: [(&str, &str); 4] = [
    ("ZStandardCodec", "zstd"),
    ("BZip2Codec", "bzip2"),
    ("Lz4Codec", "lz4"),
    ("SnappyCodec", "snappy"),
];

impl Codec {
    pub(super) fn of(class: &str) -> Result<Codec, String> {
        match class.strip_prefix(PACKAGE).unwrap_or(class) {
            "DefaultCodec" | "DeflateCodec" => Ok(Codec::Default),
            "GzipCodec" => Ok(Codec::Gzip),
            #[cfg(feature = "zstd")]
            "ZStandardCodec" => Ok(Codec::Zstandard),
            #[cfg(feature = "bzip2")]
            "BZip2Codec" => Ok(Codec::Bzip2),
            #[cfg(feature = "lz4")]
            "Lz4Codec" => Ok(Codec::Lz4),
            #[cfg(feature = "snappy")]
            "SnappyCodec" => Ok(Codec::Snappy),
            known => Err(match FEATURES.iter().find(|(codec, _)| *codec == known) {
                Some((_, feature)) => format!(
                    "it is compressed with {class}; build this program with the feature {feature} of napreduce"
                ),
                None => format!(
                    "it is compressed with {class}, which is not supported; write it with DefaultCodec or GzipCodec"
                ),
            }),
        }
    }

    /// Decompresses at most `limit` bytes.
    pub(super) fn decompress(self, stored: &[u8], limit: usize) -> Result<Vec<u8>, ContentError> {
        match self {
            Codec::Default => read_up_to(ZlibDecoder::new(stored), limit),
            Codec::Gzip => read_up_to(MultiGzDecoder::new(stored), limit),
            #[cfg(feature = "zstd")]
            Codec::Zstandard => crate::content::zstd(stored, limit),
            #[cfg(feature = "bzip2")]
            Codec::Bzip2 => read_up_to(bzip2::bufread::MultiBzDecoder::new(stored), limit),
            #[cfg(feature = "lz4")]
            Codec::Lz4 => read_up_to(
                HadoopBlocks::new(stored, crate::decode::LZ4_CHUNKS, limit),
                limit,
            ),
            #[cfg(feature = "snappy")]
            Codec::Snappy => read_up_to(
                HadoopBlocks::new(stored, crate::decode::SNAPPY_CHUNKS, limit),
                limit,
            ),
        }
    }
}
