//! The compressions of SequenceFiles, by the names of Hadoop's classes.
//!
//! Owns which are known and the bound on what comes out. Does not own what is compressed.

use std::io::Read;

use flate2::bufread::{MultiGzDecoder, ZlibDecoder};
use napreduce_live::ByteSize;

/// How values or blocks are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    Default,
    Gzip,
    Zstandard,
    #[cfg(feature = "bzip2")]
    Bzip2,
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
            _ => Err(format!(
                "it is compressed with {class}, which is not read; write it with DefaultCodec or GzipCodec"
            )),
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
