//! The stored bytes of a compressed file, buffered for a decoder.
//!
//! Owns the buffer, the count of bytes the decoder took, and the trouble that must not pass for corrupt data.
//! Does not own decompression.

use std::fmt::Display;
use std::io::{self, BufRead, Read};

use super::Compression;
use super::decoder::TOO_SHORT;
use super::source::{PlainFile, Trouble};

const BUFFER_BYTES: usize = 64 << 10;

/// A buffered file that a decoder reads.
pub(super) struct Stored {
    file: PlainFile,
    buffer: Vec<u8>,
    taken: usize,
    filled: usize,
    ended: bool,
    starved: bool,
    trouble: Option<Trouble>,
}

impl Stored {
    pub(super) fn new(file: PlainFile) -> Self {
        Stored {
            file,
            buffer: vec![0; BUFFER_BYTES],
            taken: 0,
            filled: 0,
            ended: false,
            starved: false,
            trouble: None,
        }
    }

    /// The file, for another decoder.
    #[cfg(feature = "xz")]
    pub(super) fn into_file(self) -> PlainFile {
        self.file
    }

    /// Bytes that the decoder took.
    pub(super) fn position(&self) -> u64 {
        self.file.position() - (self.filled - self.taken) as u64
    }

    /// Whether a decoder asked for more than there is.
    #[cfg(feature = "lz4")]
    pub(super) fn is_starved(&self) -> bool {
        self.starved
    }

    /// Whether the file has ended, with all its bytes taken.
    pub(super) fn is_exhausted(&self) -> bool {
        self.ended && self.taken == self.filled
    }

    /// What is wrong where a decoder of these bytes has failed: with the file itself, if it failed for that.
    #[cold]
    pub(super) fn failed(
        &mut self,
        compression: Compression,
        error: &impl Display,
        is_cut_off: bool,
    ) -> Trouble {
        self.trouble.take().unwrap_or_else(|| {
            let reason = if is_cut_off { TOO_SHORT.to_owned() } else { format!("is not valid ({error})") };
            self.damaged(compression, reason)
        })
    }

    /// What is wrong with them, seen behind the bytes that the decoder took.
    #[cold]
    pub(super) fn damaged(&self, compression: Compression, reason: String) -> Trouble {
        Trouble::Damaged { compression, offset: self.position(), reason }
    }

    /// The next bytes, at least `wanted` of them unless the file ends before.
    pub(super) fn peek(&mut self, wanted: usize) -> Result<&[u8], Trouble> {
        while self.filled - self.taken < wanted && !self.ended {
            self.buffer.copy_within(self.taken..self.filled, 0);
            self.filled -= self.taken;
            self.taken = 0;
            let read = self.file.read(&mut self.buffer[self.filled..])?;
            self.filled += read;
            self.ended = read == 0;
        }
        Ok(&self.buffer[self.taken..self.filled])
    }

    /// Takes `bytes`, or as many as there are, and returns how many.
    pub(super) fn skip(&mut self, bytes: u64) -> Result<u64, Trouble> {
        let mut skipped = 0;
        while skipped < bytes {
            let left = usize::try_from(bytes - skipped).unwrap_or(usize::MAX);
            let step = self.peek(1)?.len().min(left);
            if step == 0 {
                break;
            }
            self.taken += step;
            skipped += step as u64;
        }
        Ok(skipped)
    }
}

impl Stored {
    /// As [`peek`](Stored::peek), for a reader; what is wrong is known to [`failed`](Stored::failed).
    pub(super) fn fill(&mut self, wanted: usize) -> io::Result<&[u8]> {
        if let Err(trouble) = self.peek(wanted) {
            self.trouble = Some(trouble);
            return Err(io::Error::other("the file cannot be read"));
        }
        Ok(&self.buffer[self.taken..self.filled])
    }
}

impl BufRead for Stored {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.fill(1)
    }

    fn consume(&mut self, bytes: usize) {
        self.taken += bytes;
    }
}

impl Read for Stored {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let read = available.len().min(into.len());
        let starved = read == 0 && !into.is_empty();
        into[..read].copy_from_slice(&available[..read]);
        self.consume(read);
        self.starved |= starved;
        Ok(read)
    }
}
