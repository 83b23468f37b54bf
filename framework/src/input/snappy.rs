//! Snappy input: frames, and the blocks that Hadoop writes, told apart by their first bytes.
//!
//! Owns the words for what is wrong. Does not own the decompression (snap). A file of frames that was cut
//! between two of them cannot be told from a whole one: the format has no end.

use std::io::{ErrorKind, Read};

use snap::raw;
use snap::read::FrameDecoder;

use super::Compression;
use super::decoder::Decoder;
use super::hadoop_blocks::{ChunkCodec, HadoopBlocks};
use super::source::{PlainFile, Trouble};
use super::stored::Stored;

const MAGIC: &[u8] = b"\xff\x06\0\0sNaPpY";

/// A decoder for what the file holds.
pub(super) fn open(file: PlainFile, memory: usize) -> Result<Box<dyn Decoder>, Trouble> {
    let mut stored = Stored::new(file);
    let first = stored.peek(MAGIC.len())?;
    Ok(if first.starts_with(MAGIC) || MAGIC.starts_with(first) {
        Box::new(SnappyFrames(FrameDecoder::new(stored)))
    } else {
        Box::new(HadoopBlocks::new(stored, CHUNKS, memory))
    })
}

/// Three bytes may stand for 64 that came before.
pub(crate) const CHUNKS: ChunkCodec =
    ChunkCodec { compression: Compression::Snappy, decompress: decompress_chunk, growth: 22 };

fn decompress_chunk(compressed: &[u8], into: &mut [u8]) -> Result<usize, String> {
    raw::Decoder::new().decompress(compressed, into).map_err(|error| error.to_string())
}

/// The decompressed bytes of all frames of a file.
struct SnappyFrames(FrameDecoder<Stored>);

impl Decoder for SnappyFrames {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, Trouble> {
        loop {
            match self.0.read(into) {
                Ok(read) => return Ok(read),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let stored = self.0.get_mut();
                    return Err(stored.failed(Compression::Snappy, &error, stored.is_starved()));
                }
            }
        }
    }

    fn position(&self) -> u64 {
        self.0.get_ref().position()
    }
}
