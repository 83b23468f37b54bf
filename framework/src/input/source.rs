//! The bytes of a split's file from an offset on, decompressed where needed.
//!
//! Owns opening, reading with `pread`, positioning and the end of what was planned. Does not own buffers or
//! records.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use napreduce_live::progress;

use super::gzip::{Garbage, GzipStream};
use super::zstd::ZstdStream;
use super::{Compression, InputError, Split};

/// Decompressed bytes that are thrown away at a time on the way to an offset.
const DISCARD_BYTES: usize = 64 << 10;

/// A stream of the decompressed bytes of one file.
pub(super) struct Source {
    path: PathBuf,
    stream: Stream,
}

enum Stream {
    Plain(PlainFile),
    Gzip(Box<GzipStream>),
    Zstd(Box<ZstdStream>),
}

impl Source {
    /// The bytes of the file of `split` from `offset` on. A decoder may use up to `memory` bytes.
    pub(super) fn open(split: &Split, offset: u64, memory: usize) -> Result<Self, InputError> {
        let file = File::open(&split.path).map_err(|error| InputError::unreadable(&split.path, error))?;
        let file = PlainFile { file, position: 0, planned: split.file_length };
        // An empty file is empty, whatever its name says.
        let stream = match Compression::of(&split.path).filter(|_| split.file_length > 0) {
            None => Stream::Plain(PlainFile { position: offset, ..file }),
            Some(Compression::Gzip) => Stream::Gzip(Box::new(GzipStream::new(file))),
            Some(Compression::Zstd) => Stream::Zstd(Box::new(ZstdStream::new(file, memory))),
        };
        let mut source = Source { path: split.path.clone(), stream };
        if source.is_compressed() {
            source.discard(offset)?;
        }
        Ok(source)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn is_compressed(&self) -> bool {
        !matches!(self.stream, Stream::Plain(_))
    }

    /// Compressed bytes read so far; `None` where the file is not compressed.
    pub(super) fn compressed_position(&self) -> Option<u64> {
        match &self.stream {
            Stream::Plain(_) => None,
            Stream::Gzip(stream) => Some(stream.position()),
            Stream::Zstd(stream) => Some(stream.position()),
        }
    }

    /// Reads at most `into.len()` bytes, at least one unless the file has ended.
    pub(super) fn read(&mut self, into: &mut [u8]) -> Result<usize, InputError> {
        let read = match &mut self.stream {
            Stream::Plain(file) => file.read(into),
            Stream::Gzip(stream) => {
                let read = stream.read(into);
                if let Some(Garbage { offset, bytes }) = stream.take_garbage() {
                    eprintln!(
                        "{}: trailing garbage ignored: {bytes} bytes behind the gzip data, from byte {offset} on",
                        self.path.display()
                    );
                }
                read
            }
            Stream::Zstd(stream) => stream.read(into),
        };
        // A long way to an offset, or to the end of a huge record, is no standstill.
        progress();
        read.map_err(|trouble| self.error(trouble))
    }

    fn discard(&mut self, mut bytes: u64) -> Result<(), InputError> {
        let mut discarded = vec![0; DISCARD_BYTES.min(usize::try_from(bytes).unwrap_or(DISCARD_BYTES))];
        while bytes > 0 {
            let wanted = discarded.len().min(usize::try_from(bytes).unwrap_or(usize::MAX));
            let read = self.read(&mut discarded[..wanted])?;
            if read == 0 {
                break;
            }
            bytes -= read as u64;
        }
        Ok(())
    }

    #[cold]
    fn error(&self, trouble: Trouble) -> InputError {
        let path = self.path.clone();
        match trouble {
            Trouble::Unreadable(error) => InputError::Unreadable { path, error },
            Trouble::Shortened { planned, found } => InputError::Shortened { path, planned, found },
            Trouble::WindowTooLarge { window } => InputError::WindowTooLarge { path, window },
            Trouble::Damaged { compression, offset, reason } => {
                InputError::Damaged { path, compression, offset, reason }
            }
        }
    }
}

/// What goes wrong while reading, before it is known of which file.
pub(super) enum Trouble {
    Unreadable(io::Error),
    Shortened { planned: u64, found: u64 },
    WindowTooLarge { window: u64 },
    Damaged { compression: Compression, offset: u64, reason: String },
}

/// A file as it is stored, up to the size it had when the splits were planned.
pub(super) struct PlainFile {
    file: File,
    position: u64,
    planned: u64,
}

impl PlainFile {
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Bytes in all, when the splits were planned.
    pub(super) fn length(&self) -> u64 {
        self.planned
    }

    pub(super) fn read(&mut self, into: &mut [u8]) -> Result<usize, Trouble> {
        let left = usize::try_from(self.planned.saturating_sub(self.position)).unwrap_or(usize::MAX);
        let wanted = into.len().min(left);
        if wanted == 0 {
            return Ok(0);
        }
        loop {
            match self.file.read_at(&mut into[..wanted], self.position) {
                Ok(0) => return Err(Trouble::Shortened { planned: self.planned, found: self.position }),
                Ok(read) => {
                    self.position += read as u64;
                    return Ok(read);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Trouble::Unreadable(error)),
            }
        }
    }
}
