//! The block streams of Hadoop's codecs for lz4 and snappy.
//!
//! Each block is the length of its content and chunks, each with its compressed length; all lengths are 4
//! bytes, big-endian. Empty blocks and chunks may occur anywhere: an empty file is an empty block, and `cat`
//! joins files.

use std::io::{self, ErrorKind, Read};

use super::decoder::{Decoder, Stored};
use crate::bytes::ReadError;

const LENGTH_BYTES: u64 = 4;
/// Content of a chunk that every reader supports; Hadoop's default is 256 KiB.
const CHUNK_BYTES_ALWAYS: usize = 8 << 20;
/// A file that ends within a larger first chunk is other data, not a truncated file.
const CHUNK_BYTES_USUAL: usize = 1 << 20;
/// Limit of a chunk in all codecs. Data that begins with a letter or a byte order mark exceeds it.
const CHUNK_BYTES_MAX: usize = (128 << 20) - 1;
/// Hadoop's lengths are signed.
const BLOCK_BYTES_MAX: usize = i32::MAX as usize;

/// Decompresses one chunk into the front of a buffer of the maximum size; returns the number of bytes.
type Decompress = fn(&[u8], &mut [u8]) -> Result<usize, String>;

/// A compression of chunks.
#[derive(Clone, Copy)]
pub(crate) struct ChunkCodec {
    pub(crate) name: &'static str,
    pub(crate) decompress: Decompress,
    /// Maximum expansion of a chunk.
    pub(crate) growth: usize,
}

/// The decompressed bytes of a block stream.
pub(crate) struct HadoopBlocks<R> {
    stored: R,
    codec: ChunkCodec,
    chunk_max: usize,
    /// Bytes taken, in total and before the current block.
    taken: u64,
    block_at: u64,
    /// Remaining content of the block.
    left: usize,
    compressed: Vec<u8>,
    chunk: Vec<u8>,
    filled: usize,
    given: usize,
    /// Size of a chunk that exceeds the memory.
    too_large: Option<usize>,
}

impl<R: Read> HadoopBlocks<R> {
    /// Creates a reader. Chunks may have `memory` bytes, or the usual size.
    pub(crate) fn new(stored: R, codec: ChunkCodec, memory: usize) -> Self {
        HadoopBlocks {
            stored,
            codec,
            chunk_max: memory.max(CHUNK_BYTES_ALWAYS),
            taken: 0,
            block_at: 0,
            left: 0,
            compressed: Vec::new(),
            chunk: Vec::new(),
            filled: 0,
            given: 0,
            too_large: None,
        }
    }

    /// Reads the next length; `None` at the end of the stream.
    fn length(&mut self, most: usize) -> io::Result<Option<usize>> {
        let mut bytes = [0; LENGTH_BYTES as usize];
        let mut filled = 0;
        while filled < bytes.len() {
            match self.stored.read(&mut bytes[filled..])? {
                0 if filled == 0 => return Ok(None),
                0 => break,
                read => filled += read,
            }
        }
        self.taken += filled as u64;
        let length = u32::from_be_bytes(bytes) as usize;
        if filled < bytes.len() {
            return Err(self.cut_off(length));
        }
        if length > most {
            Err(self.not_a_block())
        } else {
            Ok(Some(length))
        }
    }

    /// Decompresses the next chunk; returns false at the end of the stream.
    fn next_chunk(&mut self) -> io::Result<bool> {
        while self.left == 0 {
            self.block_at = self.taken;
            let Some(length) = self.length(BLOCK_BYTES_MAX)? else {
                return Ok(false);
            };
            self.left = length;
        }
        let is_first = self.taken == self.block_at + LENGTH_BYTES;
        let Some(length) = self.length(CHUNK_BYTES_MAX)? else {
            return Err(self.cut_off(if is_first { self.left } else { 0 }));
        };
        self.compressed.clear();
        let held = length.min(self.chunk_max);
        let mut read = self
            .stored
            .by_ref()
            .take(held as u64)
            .read_to_end(&mut self.compressed)? as u64;
        read += io::copy(
            &mut self.stored.by_ref().take((length - held) as u64),
            &mut io::sink(),
        )?;
        self.taken += read;
        if read < length as u64 {
            let is_doubtful = is_first && self.block_at == 0 && length > CHUNK_BYTES_USUAL;
            return Err(if is_doubtful {
                self.not_a_block()
            } else {
                ErrorKind::UnexpectedEof.into()
            });
        }
        self.check_room(length)?;
        (self.given, self.filled) = (0, 0);
        if length > 0 {
            self.decompress()?;
        }
        Ok(true)
    }

    fn decompress(&mut self) -> io::Result<()> {
        let possible = self
            .left
            .min(self.compressed.len().saturating_mul(self.codec.growth));
        let room = possible.min(self.chunk_max);
        if self.chunk.len() < room {
            self.chunk.resize(room, 0);
        }
        match (self.codec.decompress)(&self.compressed, &mut self.chunk[..room]) {
            Ok(bytes) => {
                self.filled = bytes;
                self.left -= bytes;
                Ok(())
            }
            Err(_) if room < possible => self.check_room(possible),
            Err(reason) => Err(io::Error::new(ErrorKind::InvalidData, reason)),
        }
    }

    fn check_room(&mut self, bytes: usize) -> io::Result<()> {
        if bytes <= self.chunk_max {
            return Ok(());
        }
        self.too_large = Some(bytes);
        Err(io::Error::new(
            ErrorKind::OutOfMemory,
            "a chunk exceeds the memory of the task",
        ))
    }

    /// The error for a stream that ends after this length. A length made of text means that the data is not
    /// blocks.
    #[cold]
    fn cut_off(&self, length: usize) -> io::Error {
        if length > CHUNK_BYTES_MAX {
            self.not_a_block()
        } else {
            ErrorKind::UnexpectedEof.into()
        }
    }

    #[cold]
    fn not_a_block(&self) -> io::Error {
        let what = match self.block_at {
            0 => format!("{} header expected", self.codec.name),
            at => format!("no block at byte {at}"),
        };
        io::Error::new(ErrorKind::InvalidData, what)
    }
}

impl<R: Read> Read for HadoopBlocks<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.given == self.filled {
            if !self.next_chunk()? {
                return Ok(0);
            }
        }
        let rest = &self.chunk[self.given..self.filled];
        let read = rest.len().min(into.len());
        into[..read].copy_from_slice(&rest[..read]);
        self.given += read;
        Ok(read)
    }
}

impl Decoder for HadoopBlocks<Stored> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, ReadError> {
        Read::read(self, into).map_err(|error| match self.too_large {
            Some(bytes) => ReadError::WindowTooLarge {
                window: bytes as u64,
            },
            None => {
                let is_cut_off = error.kind() == ErrorKind::UnexpectedEof;
                self.stored.failed(&error, is_cut_off)
            }
        })
    }

    fn position(&self) -> u64 {
        self.stored.position()
    }
}
