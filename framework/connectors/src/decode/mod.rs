//! Decompression of a file while it is read.
//!
//! A decoder reads all members, frames or streams of a file. If blocks can be located (bzip2, xz, zstd with a
//! seek table), it reads those of a range of the file, so that several readers share one file. It reports the
//! offset of damaged bytes, and always detects truncation if the format allows it.

#[cfg(feature = "bzip2")]
mod bzip2;
#[cfg_attr(
    not(all(
        feature = "bzip2",
        feature = "gzip",
        feature = "lz4",
        feature = "xz",
        feature = "zstd"
    )),
    allow(dead_code, reason = "each decoder uses a part of it")
)]
mod decoder;
#[cfg(feature = "gzip")]
mod gzip;
#[cfg(any(feature = "lz4", feature = "snappy"))]
mod hadoop_blocks;
#[cfg(feature = "lz4")]
mod lz4;
#[cfg(feature = "snappy")]
mod snappy;
#[cfg(feature = "xz")]
mod xz;
#[cfg(feature = "zstd")]
mod zstd;

use std::ops::Range;

pub use self::decoder::{Decoder, Garbage, SplitBlocks};
#[cfg(all(feature = "sequence-file", any(feature = "lz4", feature = "snappy")))]
pub(crate) use self::hadoop_blocks::HadoopBlocks;
#[cfg(all(feature = "sequence-file", feature = "lz4"))]
pub(crate) use self::lz4::CHUNKS as LZ4_CHUNKS;
#[cfg(all(feature = "sequence-file", feature = "snappy"))]
pub(crate) use self::snappy::CHUNKS as SNAPPY_CHUNKS;
#[cfg(all(feature = "avro", feature = "xz"))]
pub(crate) use self::xz::in_memory as xz_in_memory;
use crate::bytes::{ReadError, StoredFile};
use crate::compression::Compression;

/// Opens a decoder of the blocks that begin in `range`, which is the whole file for a compression without
/// such blocks. It may use `memory` bytes, or the usual size of its compression.
#[allow(
    unreachable_code,
    unreachable_patterns,
    reason = "each feature adds an arm, and with all features none is left"
)]
pub fn open(
    compression: Compression,
    file: StoredFile,
    range: &Range<u64>,
    memory: usize,
) -> Result<Box<dyn Decoder>, ReadError> {
    let _ = (&file, range, memory);
    Ok(match compression {
        #[cfg(feature = "gzip")]
        Compression::Gzip => Box::new(gzip::GzipStream::open(file)?),
        #[cfg(feature = "zstd")]
        Compression::Zstd => Box::new(zstd::ZstdStream::open(file, range, memory)?),
        #[cfg(feature = "bzip2")]
        Compression::Bzip2 => Box::new(bzip2::Bzip2Stream::open(file, range)?),
        #[cfg(feature = "xz")]
        Compression::Xz => Box::new(xz::XzStream::open(file, range, memory)?),
        #[cfg(feature = "lz4")]
        Compression::Lz4 => lz4::open(file, memory)?,
        #[cfg(feature = "snappy")]
        Compression::Snappy => snappy::open(file, memory)?,
        other => {
            let reason = format!(
                "cannot be read without the feature {} of napreduce",
                other.feature()
            );
            return Err(ReadError::Damaged { offset: 0, reason });
        }
    })
}

/// Returns whether several readers can share a file; false if it is unreadable, which opening reports.
pub fn has_several_blocks(
    compression: Compression,
    open: impl FnOnce() -> Result<StoredFile, ReadError>,
) -> bool {
    match compression {
        Compression::Bzip2 => true,
        #[cfg(feature = "xz")]
        Compression::Xz => open().is_ok_and(xz::has_several_blocks),
        #[cfg(feature = "zstd")]
        Compression::Zstd => open().is_ok_and(zstd::has_several_frames),
        _ => {
            let _ = open;
            false
        }
    }
}
