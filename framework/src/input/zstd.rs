//! Zstandard input.
//!
//! Owns the decompression of all frames of a file, one after another, their checksums and the bound on their
//! windows. Does not own the file.

use std::io::Read;

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::Compression;
use super::source::{PlainFile, Trouble};
use super::stored::Stored;

/// The longest header of a frame.
const HEADER_BYTES_MAX: usize = 18;
/// Frames with a magic number between these carry no data of the file.
const SKIPPABLE_MAGIC: std::ops::RangeInclusive<u32> = 0x184D_2A50..=0x184D_2A5F;
/// A window that every decoder is expected to manage.
const WINDOW_BYTES_ALWAYS: u64 = 8 << 20;
const SKIPPABLE_HEADER_BYTES: u64 = 8;
const TOO_SHORT: &str = "ends too early; the file is incomplete";

/// The decompressed bytes of a zstd file.
pub(super) struct ZstdStream {
    stored: Stored,
    frame: Option<FrameDecoder>,
    window_max: u64,
}

impl ZstdStream {
    /// Frames may look back at most `memory` bytes, or what is usual.
    pub(super) fn new(file: PlainFile, memory: usize) -> Self {
        ZstdStream {
            stored: Stored::new(file),
            frame: None,
            window_max: (memory as u64).max(WINDOW_BYTES_ALWAYS),
        }
    }

    /// Compressed bytes taken so far.
    pub(super) fn position(&self) -> u64 {
        self.stored.position()
    }

    pub(super) fn read(&mut self, into: &mut [u8]) -> Result<usize, Trouble> {
        loop {
            let Some(frame) = &mut self.frame else {
                if !self.begin_frame()? {
                    return Ok(0);
                }
                continue;
            };
            if frame.can_collect() > 0 {
                return frame.read(into).map_err(|error| self.damaged(format!("is not valid ({error})")));
            }
            if frame.is_finished() {
                let (written, computed) = (frame.get_checksum_from_data(), frame.get_calculated_checksum());
                if written.is_some() && written != computed {
                    return Err(self.damaged("does not match its checksum".to_owned()));
                }
                self.frame = None;
            } else if let Err(error) =
                frame.decode_blocks(&mut self.stored, BlockDecodingStrategy::UptoBlocks(1))
            {
                return Err(self.failed(&error));
            }
        }
    }

    /// Begins the next frame that holds data; `false` where the file has ended.
    fn begin_frame(&mut self) -> Result<bool, Trouble> {
        loop {
            let header = self.stored.peek(HEADER_BYTES_MAX)?;
            if header.is_empty() {
                return Ok(false);
            }
            if let Some(length) = skippable_length(header) {
                let wanted = SKIPPABLE_HEADER_BYTES + u64::from(length);
                if self.stored.skip(wanted)? < wanted {
                    return Err(self.damaged(TOO_SHORT.to_owned()));
                }
                continue;
            }
            // A frame of its own kind of memory: a decoder that is used again reserves the whole window at
            // once.
            let window = window_size(header);
            if window > self.window_max {
                return Err(Trouble::WindowTooLarge { window });
            }
            let mut frame = FrameDecoder::new();
            if let Err(error) = frame.reset(&mut self.stored) {
                return Err(self.failed(&error));
            }
            self.frame = Some(frame);
            return Ok(true);
        }
    }

    #[cold]
    fn failed(&mut self, error: &ruzstd::decoding::errors::FrameDecoderError) -> Trouble {
        if let Some(trouble) = self.stored.take_trouble() {
            trouble
        } else if self.stored.is_exhausted() {
            self.damaged(TOO_SHORT.to_owned())
        } else {
            self.damaged(format!("is not valid ({error})"))
        }
    }

    #[cold]
    fn damaged(&self, reason: String) -> Trouble {
        Trouble::Damaged { compression: Compression::Zstd, offset: self.position(), reason }
    }
}

fn skippable_length(header: &[u8]) -> Option<u32> {
    let (magic, rest) = header.split_first_chunk::<4>()?;
    let length = rest.first_chunk::<4>()?;
    SKIPPABLE_MAGIC.contains(&u32::from_le_bytes(*magic)).then(|| u32::from_le_bytes(*length))
}

/// How far a frame may look back, in bytes, by the format's definition. 0 of a header that is cut off, which
/// the decoder refuses.
fn window_size(header: &[u8]) -> u64 {
    let Some((descriptor, rest)) = header.get(4..).and_then(<[u8]>::split_first) else { return 0 };
    let single_segment = descriptor & 0x20 != 0;
    if !single_segment {
        let Some(window) = rest.first() else { return 0 };
        let base = 1u64 << (10 + (window >> 3));
        return base + base / 8 * u64::from(window & 7);
    }
    // A single segment looks back over the whole content, whose size follows the dictionary's number.
    let dictionary_bytes = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let size_bytes = [1, 2, 4, 8][usize::from(descriptor >> 6)];
    let Some(size) = rest.get(dictionary_bytes..dictionary_bytes + size_bytes) else { return 0 };
    let mut little_endian = [0; 8];
    little_endian[..size_bytes].copy_from_slice(size);
    // Sizes of two bytes begin at 256.
    u64::from_le_bytes(little_endian).saturating_add(if size_bytes == 2 { 256 } else { 0 })
}
