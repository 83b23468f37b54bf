//! The bytes of a split's file from an offset on, decompressed where needed.
//!
//! Owns opening, reading with `pread`, positioning and the end of what was planned. Does not own buffers or
//! records.

use std::io;
use std::path::{Path, PathBuf};

use napreduce_live::printing::print_error;
use napreduce_live::{ReadPosition, progress};

#[cfg(feature = "bzip2")]
use super::bzip2::Bzip2Stream;
use super::decoder::{Decoder, Garbage};
use super::gzip::GzipStream;
#[cfg(feature = "lz4")]
use super::lz4;
use super::opening::{InputBytes, open_input, open_path};
#[cfg(feature = "snappy")]
use super::snappy;
#[cfg(feature = "xz")]
use super::xz::XzStream;
use super::zstd::ZstdStream;
use super::{Compression, InputError, Split};

/// Decompressed bytes that are thrown away at a time on the way to an offset.
const DISCARD_BYTES: usize = 64 << 10;

/// A stream of the decompressed bytes of one file, or of the compressed blocks of a split.
///
/// Offsets are those of the file. In a compressed file they are those of the decompressed one; in a split of
/// it that begins with a later block, the place where the split begins plus the decompressed bytes behind the
/// start of that block.
pub(crate) struct Source {
    path: PathBuf,
    stream: Stream,
    split_offset: u64,
    split_length: u64,
}

enum Stream {
    Plain(PlainFile),
    Compressed(Box<dyn Decoder>),
}

impl Source {
    /// The bytes of the file of `split` from `offset` on. A decoder may use up to `memory` bytes.
    pub(crate) fn open(split: &Split, offset: u64, memory: usize) -> Result<Self, InputError> {
        let mut source = Source::open_split(split, offset, memory)?;
        if source.is_compressed() {
            source.discard(offset.saturating_sub(split.offset))?;
        }
        Ok(source)
    }

    fn open_split(split: &Split, offset: u64, memory: usize) -> Result<Self, InputError> {
        let file = open_input(split, memory, true);
        let file = file.map_err(|error| InputError::unreadable(&split.path, error))?;
        let file = PlainFile { file, position: 0, planned: split.file_length };
        // An empty file is empty, whatever its name says.
        let compression = Compression::of(&split.path).filter(|_| split.file_length > 0);
        let stream = match compression {
            None => Ok(Stream::Plain(PlainFile { position: offset, ..file })),
            Some(compression) => decoder(compression, file, split, memory).map(Stream::Compressed),
        };
        let path = split.path.clone();
        let stream = stream.map_err(|trouble| trouble.in_file(&path))?;
        Ok(Source { path, stream, split_offset: split.offset, split_length: split.length })
    }

    /// The bytes of a split from `offset` on, for whoever reads lines; also where they begin, and whether
    /// inside a line that began before.
    ///
    /// A line that begins in the first byte of a split's first block belongs to the split before, since
    /// nobody knows here whether the byte before is a newline.
    pub(crate) fn open_lines(
        split: &Split,
        offset: u64,
        memory: usize,
    ) -> Result<(Self, u64, bool), InputError> {
        // The byte before tells whether a line begins at the offset.
        let before = offset.saturating_sub(1);
        if offset > split.offset || Compression::of(&split.path).is_none() {
            return Ok((Source::open(split, before, memory)?, before, offset > 0));
        }
        let source = Source::open(split, offset, memory)?;
        let inside = source.file_start().is_none();
        Ok((source, offset, inside))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn is_compressed(&self) -> bool {
        !matches!(self.stream, Stream::Plain(_))
    }

    /// Compressed bytes of the split read so far; `None` where the file is not compressed.
    pub(crate) fn compressed_position(&self) -> Option<u64> {
        match &self.stream {
            Stream::Plain(_) => None,
            Stream::Compressed(decoder) => {
                Some(decoder.position().saturating_sub(self.split_offset).min(self.split_length))
            }
        }
    }

    /// Where the records of the split lie, before the one at `offset` is read.
    pub(crate) fn position_at(&self, offset: u64) -> ReadPosition {
        let (start, length) = (self.split_offset, self.split_length);
        let position = match self.compressed_position() {
            Some(read) => ReadPosition::new(offset..offset, read..read),
            None => ReadPosition::new(start..start.saturating_add(length), 0..length),
        };
        position.set(offset);
        position
    }

    /// Bytes of the split that are done when the next record begins at `offset`.
    pub(crate) fn consumed(&self, offset: u64) -> u64 {
        let done = || offset.saturating_sub(self.split_offset).min(self.split_length);
        self.compressed_position().unwrap_or_else(done)
    }

    /// The offset of the file's first byte; `None` in a split of compressed blocks that are not its first.
    pub(crate) fn file_start(&self) -> Option<u64> {
        match &self.stream {
            Stream::Plain(_) => Some(0),
            Stream::Compressed(decoder) => {
                let starts_file = decoder.blocks().is_none_or(|blocks| blocks.starts_file);
                starts_file.then_some(self.split_offset)
            }
        }
    }

    /// Lines of a compressed split that begin here or later belong to the next one; `None` while that is not
    /// known, or where the file ends before.
    pub(crate) fn end(&self) -> Option<u64> {
        match &self.stream {
            Stream::Plain(_) => None,
            Stream::Compressed(decoder) => {
                decoder.blocks().and_then(|blocks| blocks.end).map(|end| self.split_offset + end + 1)
            }
        }
    }

    /// Reads at most `into.len()` bytes, at least one unless the file has ended.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> Result<usize, InputError> {
        let read = match &mut self.stream {
            Stream::Plain(file) => file.read(into),
            Stream::Compressed(decoder) => {
                let read = decoder.read(into);
                if let Some(Garbage { offset, bytes }) = decoder.take_garbage() {
                    let name = Compression::of(&self.path).map(|compression| compression.to_string());
                    print_error(format_args!(
                        "{}: trailing garbage ignored: {bytes} bytes behind the {} data, from byte {offset} on",
                        self.path.display(),
                        name.unwrap_or_default()
                    ));
                }
                read
            }
        };
        // A long way to an offset, or to the end of a huge record, is no standstill.
        progress();
        read.map_err(|trouble| trouble.in_file(&self.path))
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
}

fn decoder(
    compression: Compression,
    file: PlainFile,
    split: &Split,
    memory: usize,
) -> Result<Box<dyn Decoder>, Trouble> {
    Ok(match compression {
        Compression::Gzip => Box::new(GzipStream::open(file)?),
        Compression::Zstd => Box::new(ZstdStream::open(file, split, memory)?),
        #[cfg(feature = "bzip2")]
        Compression::Bzip2 => Box::new(Bzip2Stream::open(file, split)?),
        #[cfg(feature = "xz")]
        Compression::Xz => Box::new(XzStream::open(file, split, memory)?),
        #[cfg(feature = "lz4")]
        Compression::Lz4 => lz4::open(file, memory)?,
        #[cfg(feature = "snappy")]
        Compression::Snappy => snappy::open(file, memory)?,
        #[allow(unreachable_patterns, reason = "without all features some are left")]
        other => {
            let reason = "cannot be read by this program".to_owned();
            return Err(Trouble::Damaged { compression: other, offset: 0, reason });
        }
    })
}

/// What goes wrong while reading, before it is known of which file.
pub(crate) enum Trouble {
    Unreadable(io::Error),
    Shortened { planned: u64, found: u64 },
    WindowTooLarge { window: u64 },
    Damaged { compression: Compression, offset: u64, reason: String },
}

impl Trouble {
    #[cold]
    pub(super) fn in_file(self, path: &Path) -> InputError {
        let path = path.to_owned();
        match self {
            Trouble::Unreadable(error) => InputError::unreadable(&path, error),
            Trouble::Shortened { planned, found } => InputError::Shortened { path, planned, found },
            Trouble::WindowTooLarge { window } => InputError::WindowTooLarge { path, window },
            Trouble::Damaged { compression, offset, reason } => {
                InputError::Damaged { path, compression, offset, reason }
            }
        }
    }
}

/// A file as it is stored, up to the size it had when the splits were planned.
pub(crate) struct PlainFile {
    file: InputBytes,
    position: u64,
    planned: u64,
}

impl PlainFile {
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// A file as long as it is now.
    pub(crate) fn open(path: &Path) -> Result<Self, Trouble> {
        let file = open_path(path).map_err(Trouble::Unreadable)?;
        let planned = file.length().map_err(Trouble::Unreadable)?;
        Ok(PlainFile { file, position: 0, planned })
    }

    /// Fills all of `into` with what stands at `position`, and goes on behind it.
    pub(crate) fn read_exact_at(&mut self, into: &mut [u8], position: u64) -> Result<(), Trouble> {
        self.position = position;
        let mut filled = 0;
        while filled < into.len() {
            let read = self.read(&mut into[filled..])?;
            if read == 0 {
                return Err(Trouble::Shortened {
                    planned: position + into.len() as u64,
                    found: self.position,
                });
            }
            filled += read;
        }
        Ok(())
    }

    /// Reads on from there.
    pub(crate) fn seek(&mut self, position: u64) {
        self.position = position;
    }

    /// Bytes in all, when the splits were planned.
    pub(crate) fn length(&self) -> u64 {
        self.planned
    }

    pub(crate) fn read(&mut self, into: &mut [u8]) -> Result<usize, Trouble> {
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
