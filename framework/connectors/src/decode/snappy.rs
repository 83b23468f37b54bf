//! Snappy input: frames, and the blocks that Hadoop writes, told apart by their first bytes.
//!
//! A file of frames that was cut between two of them cannot be told from a whole one: the format has no end.

use std::io::{self, ErrorKind, Read};

use snap::raw;
use snap::read::FrameDecoder;

use super::decoder::{Decoder, Stored};
use super::hadoop_blocks::{ChunkCodec, HadoopBlocks};
use crate::bytes::{ReadError, StoredFile};

const MAGIC: &[u8] = b"\xff\x06\0\0sNaPpY";

/// A decoder for what the file holds.
pub(crate) fn open(file: StoredFile, memory: usize) -> Result<Box<dyn Decoder>, ReadError> {
    let mut stored = Stored::new(file);
    let first = stored.peek(MAGIC.len())?;
    Ok(if first.starts_with(MAGIC) || MAGIC.starts_with(first) {
        Box::new(SnappyFrames(FrameDecoder::new(DataChunks { stored, left: 0 })))
    } else {
        Box::new(HadoopBlocks::new(stored, CHUNKS, memory))
    })
}

/// Three bytes may stand for 64 that came before.
pub(crate) const CHUNKS: ChunkCodec = ChunkCodec { name: "snappy", decompress: decompress_chunk, growth: 22 };

fn decompress_chunk(compressed: &[u8], into: &mut [u8]) -> Result<usize, String> {
    raw::Decoder::new().decompress(compressed, into).map_err(|error| error.to_string())
}

/// The chunks of a file but for those without data, which may be longer than any buffer of a decoder.
struct DataChunks {
    stored: Stored,
    /// Bytes of the current chunk that are still to come.
    left: u64,
}

const CHUNK_HEADER_BYTES: usize = 4;
/// Chunks of these types carry no data of the file.
const SKIPPABLE_TYPES: std::ops::RangeInclusive<u8> = 0x80..=0xfe;
/// Chunks of these types are not known to anybody.
const RESERVED_TYPES: std::ops::RangeInclusive<u8> = 0x02..=0x7f;

impl Read for DataChunks {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.left == 0 {
            let header = self.stored.fill(CHUNK_HEADER_BYTES)?;
            let (kind, length) = match *header {
                [] => return Ok(0),
                [kind, ..] if RESERVED_TYPES.contains(&kind) => {
                    return Err(io::Error::new(ErrorKind::InvalidData, "no chunk begins there"));
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
