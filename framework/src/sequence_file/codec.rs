//! The compressions of SequenceFiles, by the names of Hadoop's classes.
//!
//! Owns which are known and the bound on what comes out. Does not own what is compressed.

use std::io::Read;

use flate2::bufread::{MultiGzDecoder, ZlibDecoder};
use napreduce_live::ByteSize;

#[cfg(any(feature = "lz4", feature = "snappy"))]
use crate::input::HadoopBlocks;
#[cfg(feature = "lz4")]
use crate::input::LZ4_CHUNKS;
#[cfg(feature = "snappy")]
use crate::input::SNAPPY_CHUNKS;

/// How values or blocks are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    Default,
    Gzip,
    Zstandard,
    #[cfg(feature = "bzip2")]
    Bzip2,
    #[cfg(feature = "lz4")]
    Lz4,
    #[cfg(feature = "snappy")]
    Snappy,
}

const PACKAGE: &str = "org.apache.hadoop.io.compress.";

impl Codec {
    pub(super) fn of(class: &str) -> Result<Codec, String> {
        match class.strip_prefix(PACKAGE).unwrap_or(class) {
            "DefaultCodec" | "DeflateCodec" => Ok(Codec::Default),
            "GzipCodec" => Ok(Codec::Gzip),
            "ZStandardCodec" => Ok(Codec::Zstandard),
            #[cfg(feature = "bzip2")]
            "BZip2Codec" => Ok(Codec::Bzip2),
            #[cfg(feature = "lz4")]
            "Lz4Codec" => Ok(Codec::Lz4),
            #[cfg(feature = "snappy")]
            "SnappyCodec" => Ok(Codec::Snappy),
            known => {
                let features = [("BZip2Codec", "bzip2"), ("Lz4Codec", "lz4"), ("SnappyCodec", "snappy")];
                Err(match features.iter().find(|(codec, _)| *codec == known) {
                    Some((_, feature)) => format!(
                        "it is compressed with {class}; build this program with the feature {feature} of napreduce"
                    ),
                    None => format!(
                        "it is compressed with {class}, which is not read; write it with DefaultCodec or GzipCodec"
                    ),
                })
            }
        }
    }

    /// What is in these bytes, of at most `limit` bytes.
    pub(super) fn decompress(self, stored: &[u8], limit: usize) -> Result<Vec<u8>, String> {
        match self {
            Codec::Default => read_up_to(ZlibDecoder::new(stored), limit),
            Codec::Gzip => read_up_to(MultiGzDecoder::new(stored), limit),
            Codec::Zstandard => {
                let decoder = ruzstd::decoding::StreamingDecoder::new(stored);
                read_up_to(decoder.map_err(|error| error.to_string())?, limit)
            }
            #[cfg(feature = "bzip2")]
            Codec::Bzip2 => read_up_to(bzip2::bufread::MultiBzDecoder::new(stored), limit),
            #[cfg(feature = "lz4")]
            Codec::Lz4 => read_up_to(HadoopBlocks::new(stored, LZ4_CHUNKS, limit), limit),
            #[cfg(feature = "snappy")]
            Codec::Snappy => read_up_to(HadoopBlocks::new(stored, SNAPPY_CHUNKS, limit), limit),
        }
    }
}

fn read_up_to(decoder: impl Read, limit: usize) -> Result<Vec<u8>, String> {
    let mut content = Vec::new();
    decoder.take(limit as u64 + 1).read_to_end(&mut content).map_err(|error| error.to_string())?;
    if content.len() > limit {
        let limit = ByteSize::new(limit as u64);
        return Err(format!(
            "a record or a block is larger than {limit}, the memory of the task; raise --task-memory"
        ));
    }
    Ok(content)
}
