//! Lz4 input: frames or Hadoop's blocks, recognized by their first bytes.

use std::io::{ErrorKind, Read};

use lz4_flex::frame::FrameDecoder;

use super::decoder::{Decoder, Stored, TOO_SHORT, begins_with_any, no_frame};
use super::hadoop_blocks::{ChunkCodec, HadoopBlocks};
use crate::bytes::{ReadError, StoredFile};
use crate::compression::SKIPPABLE_MAGIC;

const MAGIC: u32 = 0x184D_2204;
const LEGACY_MAGIC: u32 = 0x184C_2102;
const SKIPPABLE_HEADER_BYTES: usize = 8;

/// Opens a decoder for the content of the file.
pub(crate) fn open(file: StoredFile, memory: usize) -> Result<Box<dyn Decoder>, ReadError> {
    let mut stored = Stored::new(file);
    Ok(if begins_frame(stored.peek(4)?) {
        Box::new(Lz4Frames {
            between: Some(stored),
            frame: None,
        })
    } else {
        Box::new(HadoopBlocks::new(stored, CHUNKS, memory))
    })
}

fn begins_frame(bytes: &[u8]) -> bool {
    begins_with_any(bytes, SKIPPABLE_MAGIC.chain([MAGIC, LEGACY_MAGIC]))
}

/// Maximum expansion: one byte for 255.
pub(crate) const CHUNKS: ChunkCodec = ChunkCodec {
    name: "lz4",
    decompress: decompress_chunk,
    growth: 255,
};

fn decompress_chunk(compressed: &[u8], into: &mut [u8]) -> Result<usize, String> {
    lz4_flex::block::decompress_into(compressed, into).map_err(|error| error.to_string())
}

/// The decompressed bytes of all frames of a file.
struct Lz4Frames {
    /// The file, between two frames.
    between: Option<Stored>,
    /// The file, in a frame.
    frame: Option<FrameDecoder<Stored>>,
}

impl Lz4Frames {
    /// Starts the next frame with data; returns false at the end of the file.
    fn begin_frame(&mut self) -> Result<bool, ReadError> {
        let Some(stored) = &mut self.between else {
            return Ok(false);
        };
        loop {
            let header = stored.peek(SKIPPABLE_HEADER_BYTES)?;
            if header.is_empty() {
                return Ok(false);
            }
            if !begins_frame(header) {
                return Err(no_frame("lz4", stored.position()));
            }
            let number = |at: usize| {
                header
                    .get(at..at + 4)?
                    .first_chunk()
                    .map(|b| u32::from_le_bytes(*b))
            };
            let magic = number(0);
            let length = number(4);
            let held = header.len() as u64;
            match (magic, length) {
                (Some(MAGIC), _) => break,
                (Some(magic), Some(length)) if SKIPPABLE_MAGIC.contains(&magic) => {
                    let wanted = SKIPPABLE_HEADER_BYTES as u64 + u64::from(length);
                    if stored.skip(wanted)? < wanted {
                        return Err(stored.damaged(TOO_SHORT.to_owned()));
                    }
                }
                (Some(LEGACY_MAGIC), _) => {
                    let reason = "is in lz4's legacy format, which has no end mark; compress it with a current lz4";
                    return Err(stored.damaged(reason.to_owned()));
                }
                _ => {
                    stored.skip(held)?;
                    return Err(stored.damaged(TOO_SHORT.to_owned()));
                }
            }
        }
        self.frame = self.between.take().map(FrameDecoder::new);
        Ok(true)
    }
}

impl Decoder for Lz4Frames {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, ReadError> {
        loop {
            let Some(frame) = &mut self.frame else {
                if !self.begin_frame()? {
                    return Ok(0);
                }
                continue;
            };
            match frame.read(into) {
                // The decoder treats the end of the file as the end of a frame.
                Ok(0) if frame.get_ref().is_starved() => {
                    return Err(frame.get_ref().damaged(TOO_SHORT.to_owned()));
                }
                Ok(0) => self.between = self.frame.take().map(FrameDecoder::into_inner),
                Ok(read) => return Ok(read),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let is_cut_off = error.kind() == ErrorKind::UnexpectedEof;
                    return Err(frame.get_mut().failed(&error, is_cut_off));
                }
            }
        }
    }

    fn position(&self) -> u64 {
        let stored = self
            .frame
            .as_ref()
            .map(FrameDecoder::get_ref)
            .or(self.between.as_ref());
        stored.map_or(0, Stored::position)
    }
}
