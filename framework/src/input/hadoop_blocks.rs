//! The block streams that Hadoop's codecs write for lz4 and snappy.
//!
//! Owns their framing: for each block the length of its content, then chunks, each with its compressed
//! length, until the content is whole; all lengths in four bytes, the highest first. Does not own the
//! compression of a chunk.

use super::Compression;
use super::decoder::{Decoder, TOO_SHORT};
use super::source::Trouble;
use super::stored::Stored;

const LENGTH_BYTES: usize = 4;
/// Content that every reader is expected to manage; Hadoop's default is 256 KiB.
const BLOCK_BYTES_ALWAYS: usize = 8 << 20;

/// Decompresses one chunk into the buffer, and answers how many bytes that were; the content has
/// room for no more.
pub(super) type Decompress = fn(&[u8], &mut Vec<u8>, usize) -> Result<usize, String>;

/// The decompressed bytes of such a file.
pub(super) struct HadoopBlocks {
    stored: Stored,
    compression: Compression,
    decompress: Decompress,
    block_max: usize,
    /// Content of the block that is still to come.
    left: usize,
    ended: bool,
    compressed: Vec<u8>,
    chunk: Vec<u8>,
    given: usize,
}

impl HadoopBlocks {
    pub(super) fn new(
        stored: Stored,
        compression: Compression,
        decompress: Decompress,
        memory: usize,
    ) -> Self {
        HadoopBlocks {
            stored,
            compression,
            decompress,
            block_max: memory.max(BLOCK_BYTES_ALWAYS),
            left: 0,
            ended: false,
            compressed: Vec::new(),
            chunk: Vec::new(),
            given: 0,
        }
    }

    /// `None` at the end of the file.
    fn length(&mut self) -> Result<Option<usize>, Trouble> {
        let bytes = self.stored.peek(LENGTH_BYTES)?;
        let Some(length) = bytes.first_chunk::<LENGTH_BYTES>() else {
            if bytes.is_empty() {
                return Ok(None);
            }
            self.stored.skip(LENGTH_BYTES as u64)?;
            return Err(self.damaged(TOO_SHORT.to_owned()));
        };
        let length = u32::from_be_bytes(*length) as usize;
        self.stored.skip(LENGTH_BYTES as u64)?;
        Ok(Some(length))
    }

    /// Decompresses the next chunk; false at the end of the file.
    fn next_chunk(&mut self) -> Result<bool, Trouble> {
        if self.left == 0 {
            match self.length()? {
                // An empty block ends what was written.
                None | Some(0) => return Ok(false),
                Some(length) => self.left = length,
            }
        }
        if self.left > self.block_max {
            return Err(Trouble::WindowTooLarge { window: self.left as u64 });
        }
        let Some(length) = self.length()? else { return Err(self.damaged(TOO_SHORT.to_owned())) };
        if length > self.block_max {
            return Err(Trouble::WindowTooLarge { window: length as u64 });
        }
        self.compressed.clear();
        while self.compressed.len() < length {
            let bytes = self.stored.peek(1)?;
            let taken = bytes.len().min(length - self.compressed.len());
            if taken == 0 {
                return Err(self.damaged(TOO_SHORT.to_owned()));
            }
            self.compressed.extend_from_slice(&bytes[..taken]);
            self.stored.skip(taken as u64)?;
        }
        self.given = 0;
        let decompressed = (self.decompress)(&self.compressed, &mut self.chunk, self.left);
        let bytes = decompressed.map_err(|reason| self.damaged(format!("is not valid ({reason})")))?;
        self.chunk.truncate(bytes);
        self.left -= bytes;
        Ok(true)
    }

    #[cold]
    fn damaged(&self, reason: String) -> Trouble {
        Trouble::Damaged { compression: self.compression, offset: self.stored.position(), reason }
    }
}

impl Decoder for HadoopBlocks {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, Trouble> {
        while self.given == self.chunk.len() && !self.ended {
            self.ended = !self.next_chunk()?;
        }
        let rest = &self.chunk[self.given..];
        let read = rest.len().min(into.len());
        into[..read].copy_from_slice(&rest[..read]);
        self.given += read;
        Ok(read)
    }

    fn position(&self) -> u64 {
        self.stored.position()
    }
}
