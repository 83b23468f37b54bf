//! Zstandard input. A seek table at the end of the file lists the frames.

use std::io::Read;
use std::ops::Range;

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::decoder::{Decoder, SplitBlocks, Stored, TOO_SHORT, begins_with_any, no_frame};
use crate::bytes::{ReadError, StoredFile};
use crate::compression::{SKIPPABLE_MAGIC, skippable_bytes};

/// Maximum bytes of a frame header.
const HEADER_BYTES_MAX: usize = 18;
const MAGIC: u32 = 0xFD2F_B528;
/// Window that every decoder supports.
const WINDOW_BYTES_ALWAYS: u64 = 8 << 20;
const SKIPPABLE_HEADER_BYTES: u64 = 8;

/// The decompressed bytes of a zstd file.
pub(crate) struct ZstdStream {
    stored: Stored,
    frame: Option<FrameDecoder>,
    window_max: u64,
    blocks: SplitBlocks,
}

impl ZstdStream {
    /// Opens the frames of `split`, which is the whole file unless there is a seek table. Windows may have
    /// `memory` bytes, or the usual size.
    pub(crate) fn open(
        mut file: StoredFile,
        range: &Range<u64>,
        memory: usize,
    ) -> Result<Self, ReadError> {
        let mut starts_file = true;
        if range.start > 0 {
            let frames = frames_in_table(&mut file)?.unwrap_or_default();
            let first = frames.iter().copied().find(|frame| *frame >= range.start);
            starts_file = first.is_some() && first == frames.first().copied();
            file.seek(
                first
                    .filter(|first| *first < range.end)
                    .unwrap_or(file.length()),
            );
        }
        Ok(ZstdStream {
            stored: Stored::new(file),
            frame: None,
            window_max: (memory as u64).max(WINDOW_BYTES_ALWAYS),
            blocks: SplitBlocks::of(range, starts_file),
        })
    }
}

impl Decoder for ZstdStream {
    fn position(&self) -> u64 {
        self.stored.position()
    }

    fn blocks(&self) -> Option<&SplitBlocks> {
        Some(&self.blocks)
    }

    fn read(&mut self, into: &mut [u8]) -> Result<usize, ReadError> {
        loop {
            let Some(frame) = &mut self.frame else {
                if !self.begin_frame()? {
                    return Ok(0);
                }
                continue;
            };
            if frame.can_collect() > 0 {
                let read = frame
                    .read(into)
                    .map_err(|error| self.damaged(format!("is not valid ({error})")))?;
                self.blocks.read(read);
                return Ok(read);
            }
            if frame.is_finished() {
                let written = frame.get_checksum_from_data();
                let computed = frame.get_calculated_checksum();
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
}

impl ZstdStream {
    /// Starts the next frame with data; returns false at the end of the file.
    fn begin_frame(&mut self) -> Result<bool, ReadError> {
        loop {
            let header = self.stored.peek(HEADER_BYTES_MAX)?;
            if header.is_empty() {
                return Ok(false);
            }
            if !begins_with_any(header, SKIPPABLE_MAGIC.chain([MAGIC])) {
                return Err(no_frame("zstd", self.stored.position()));
            }
            if let Some(wanted) = skippable_bytes(header) {
                if self.stored.skip(wanted)? < wanted {
                    return Err(self.damaged(TOO_SHORT.to_owned()));
                }
                continue;
            }
            // A new decoder per frame: a reused one allocates the whole window at once.
            let window = window_size(header);
            if window > self.window_max {
                return Err(ReadError::WindowTooLarge { window });
            }
            self.blocks.begin(self.stored.position());
            let mut frame = FrameDecoder::new();
            if let Err(error) = frame.reset(&mut self.stored) {
                return Err(self.failed(&error));
            }
            self.frame = Some(frame);
            return Ok(true);
        }
    }

    #[cold]
    fn failed(&mut self, error: &ruzstd::decoding::errors::FrameDecoderError) -> ReadError {
        self.stored.failed(error, self.stored.is_exhausted())
    }

    #[cold]
    fn damaged(&self, reason: String) -> ReadError {
        self.stored.damaged(reason)
    }
}

const SEEK_FOOTER_BYTES: u64 = 9;
const SEEK_FOOTER_MAGIC: [u8; 4] = 0x8F92_EAB1_u32.to_le_bytes();
const SEEK_TABLE_MAGIC: u32 = 0x184D_2A5E;
const SEEK_FRAMES_MAX: u64 = 0x800_0000;

/// Reads the offsets of frames from zstd's `contrib/seekable_format`. Returns `None` without a valid table.
fn frames_in_table(file: &mut StoredFile) -> Result<Option<Vec<u64>>, ReadError> {
    let length = file.length();
    let Some(at) = length.checked_sub(SEEK_FOOTER_BYTES) else {
        return Ok(None);
    };
    let mut footer = [0; SEEK_FOOTER_BYTES as usize];
    file.read_exact_at(&mut footer, at)?;
    let [n0, n1, n2, n3, descriptor, magic @ ..] = footer;
    let count = u64::from(u32::from_le_bytes([n0, n1, n2, n3]));
    let entry_bytes = if descriptor & 0x80 == 0 { 8 } else { 12 };
    let content = count * entry_bytes + SEEK_FOOTER_BYTES;
    let Some(start) = length.checked_sub(content + SKIPPABLE_HEADER_BYTES) else {
        return Ok(None);
    };
    if magic != SEEK_FOOTER_MAGIC || descriptor & 0x7c != 0 || count > SEEK_FRAMES_MAX {
        return Ok(None);
    }
    let mut table = vec![0; (length - SEEK_FOOTER_BYTES - start) as usize];
    file.read_exact_at(&mut table, start)?;
    let (header, entries) = table.split_at(SKIPPABLE_HEADER_BYTES as usize);
    if header[..4] != SEEK_TABLE_MAGIC.to_le_bytes()
        || skippable_bytes(header) != Some(SKIPPABLE_HEADER_BYTES + content)
    {
        return Ok(None);
    }
    let mut at = 0;
    let mut frames = Vec::new();
    for entry in entries.chunks_exact(entry_bytes as usize) {
        frames.push(at);
        at += entry
            .first_chunk()
            .map_or(0, |bytes| u64::from(u32::from_le_bytes(*bytes)));
    }
    Ok((at == start).then_some(frames))
}

/// Returns whether several readers can share the file.
pub(crate) fn has_several_frames(mut file: StoredFile) -> bool {
    let frames = frames_in_table(&mut file);
    frames.is_ok_and(|frames| frames.is_some_and(|frames| frames.len() > 1))
}

/// Returns the window size of a frame, or 0 for a truncated header, which the decoder rejects.
fn window_size(header: &[u8]) -> u64 {
    let Some((descriptor, rest)) = header.get(4..).and_then(<[u8]>::split_first) else {
        return 0;
    };
    let single_segment = descriptor & 0x20 != 0;
    if !single_segment {
        let Some(window) = rest.first() else { return 0 };
        let base = 1u64 << (10 + (window >> 3));
        return base + base / 8 * u64::from(window & 7);
    }
    // The window of a single segment is its whole content, whose size follows the dictionary id.
    let dictionary_bytes = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let size_bytes = [1, 2, 4, 8][usize::from(descriptor >> 6)];
    let Some(size) = rest.get(dictionary_bytes..dictionary_bytes + size_bytes) else {
        return 0;
    };
    let mut little_endian = [0; 8];
    little_endian[..size_bytes].copy_from_slice(size);
    // Sizes of two bytes are offset by 256.
    u64::from_le_bytes(little_endian).saturating_add(if size_bytes == 2 { 256 } else { 0 })
}
