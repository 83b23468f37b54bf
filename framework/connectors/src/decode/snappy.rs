//! Snappy input: frames or Hadoop's blocks, recognized by their first bytes. Truncation between two frames
//! cannot be detected: the format has no end mark.

use std::io::{self, ErrorKind, Read};

use snap::raw;
use snap::read::FrameDecoder;

use super::decoder::{Decoder, Stored};
use super::hadoop_blocks::{ChunkCodec, HadoopBlocks};
use crate::bytes::{ReadError, StoredFile};

const MAGIC: &[u8] = b"\xff\x06\0\0sNaPpY";

/// Opens a decoder for the content of the file.
pub(crate) fn open(file: StoredFile, memory: usize) -> Result<Box<dyn Decoder>, ReadError> {
    let mut stored = Stored::new(file);
    let first = stored.peek(MAGIC.len())?;
    Ok(if first.starts_with(MAGIC) || MAGIC.starts_with(first) {
        Box::new(SnappyFrames(FrameDecoder::new(DataChunks {
            stored,
            left: 0,
        })))
    } else {
        Box::new(HadoopBlocks::new(stored, CHUNKS, memory))
    })
}

/// Maximum expansion: three bytes for 64.
pub(crate) const CHUNKS: ChunkCodec = ChunkCodec {
    name: "snappy",
    decompress: decompress_chunk,
    growth: 22,
};

fn decompress_chunk(compressed: &[u8], into: &mut [u8]) -> Result<usize, String> {
    raw::Decoder::new()
        .decompress(compressed, into)
        .map_err(|error| error.to_string())
}

/// The chunks of a file without those that contain no data, which may exceed a decoder's buffer.
struct DataChunks {
    stored: Stored,
    /// Remaining bytes of the current chunk.
    left: u64,
}

const CHUNK_HEADER_BYTES: usize = 4;
/// Returns whether chunks of this type contain no data.
const SKIPPABLE_TYPES: std::ops::RangeInclusive<u8> = 0x80..=0xfe;
/// Returns whether chunks of this type are reserved.
const RESERVED_TYPES: std::ops::RangeInclusive<u8> = 0x02..=0x7f;

impl Read for DataChunks {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.left == 0 {
            let header = self.stored.fill(CHUNK_HEADER_BYTES)?;
            let (kind, length) = match *header {
                [] => return Ok(0),
                [kind, ..] if RESERVED_TYPES.contains(&kind) => {
                    return Err(io::Error::new(ErrorKind::InvalidData, "no chunk there"));
                }
                [kind, one, two, three, ..] => (kind, u32::from_le_bytes([one, two, three, 0])),
                _ => return Err(ErrorKind::UnexpectedEof.into()),
            };
            let bytes = CHUNK_HEADER_BYTES as u64 + u64::from(length);
            if !SKIPPABLE_TYPES.contains(&kind) {
                self.left = bytes;
            } else if io::copy(&mut self.stored.by_ref().take(bytes), &mut io::sink())? < bytes {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        let read = self.stored.by_ref().take(self.left).read(into)?;
        self.left -= read as u64;
        Ok(read)
    }
}

/// The decompressed bytes of all frames of a file.
struct SnappyFrames(FrameDecoder<DataChunks>);

impl Decoder for SnappyFrames {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, ReadError> {
        loop {
            match self.0.read(into) {
                Ok(read) => return Ok(read),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let is_cut_off = error.kind() == ErrorKind::UnexpectedEof;
                    return Err(self.0.get_mut().stored.failed(&error, is_cut_off));
                }
            }
        }
    }

    fn position(&self) -> u64 {
        self.0.get_ref().stored.position()
    }
}
