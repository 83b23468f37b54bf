//! The bytes of a split's file from an offset on, decompressed if necessary.

use std::path::{Path, PathBuf};

use napreduce_connectors::bytes::{ReadError, StoredFile};
use napreduce_connectors::compression::Compression;
use napreduce_connectors::decode::{self, Decoder, Garbage};
use napreduce_protocol::Split;
use napreduce_protocol::printing::print_error;
use napreduce_task::{ReadPosition, progress};

use super::error::InputError;
use super::opening::open_input;

/// Buffer size for skipping decompressed bytes up to an offset.
const DISCARD_BYTES: usize = 64 << 10;

/// A stream of the decompressed bytes of one file, or of the compressed blocks of a split.
///
/// Offsets are those of the decompressed file. In a split of a compressed file that begins with a later
/// block, an offset is the start of the split plus the decompressed bytes since the start of that block.
pub(crate) struct Source {
    path: PathBuf,
    compression: Option<Compression>,
    stream: Stream,
    split_offset: u64,
    split_length: u64,
}

enum Stream {
    Plain(StoredFile),
    Compressed(Box<dyn Decoder>),
}

impl Source {
    /// Opens the file of `split` from `offset` on. A decoder may use up to `memory` bytes.
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
        // An empty file is empty, whatever its extension.
        let compression = Compression::of(&split.path).filter(|_| split.file_length > 0);
        let stream = match compression {
            None => Stream::Plain(StoredFile::new(file, offset, split.file_length)),
            Some(compression) => {
                let file = StoredFile::new(file, 0, split.file_length);
                let decoder = decode::open(compression, file, &(split.offset..split.end()), memory);
                let decoder =
                    decoder.map_err(|error| in_file(&split.path, Some(compression), error))?;
                Stream::Compressed(decoder)
            }
        };
        Ok(Source {
            path: split.path.clone(),
            compression,
            stream,
            split_offset: split.offset,
            split_length: split.length,
        })
    }

    /// Opens a split from `offset` on for reading lines. Also returns the start offset, and whether it is
    /// inside a line that began before.
    ///
    /// A line that begins in the first byte of a split's first block belongs to the previous split, since it
    /// is unknown here whether the byte before is a newline.
    pub(crate) fn open_lines(
        split: &Split,
        offset: u64,
        memory: usize,
    ) -> Result<(Self, u64, bool), InputError> {
        // The byte before shows whether a line begins at the offset.
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

    /// Returns how many compressed bytes of the split were read; `None` if the file is not compressed.
    pub(crate) fn compressed_position(&self) -> Option<u64> {
        match &self.stream {
            Stream::Plain(_) => None,
            Stream::Compressed(decoder) => Some(
                decoder
                    .position()
                    .saturating_sub(self.split_offset)
                    .min(self.split_length),
            ),
        }
    }

    /// Returns the position of the split's records before the one at `offset`.
    pub(crate) fn position_at(&self, offset: u64) -> ReadPosition {
        let start = self.split_offset;
        let length = self.split_length;
        let position = match self.compressed_position() {
            Some(read) => ReadPosition::new(offset..offset, read..read),
            None => ReadPosition::new(start..start.saturating_add(length), 0..length),
        };
        position.set(offset);
        position
    }

    /// Returns how many bytes of the split are done when the next record begins at `offset`.
    pub(crate) fn consumed(&self, offset: u64) -> u64 {
        let done = || {
            offset
                .saturating_sub(self.split_offset)
                .min(self.split_length)
        };
        self.compressed_position().unwrap_or_else(done)
    }

    /// Returns the offset of the file's first byte; `None` in a split of compressed blocks without the first.
    pub(crate) fn file_start(&self) -> Option<u64> {
        match &self.stream {
            Stream::Plain(_) => Some(0),
            Stream::Compressed(decoder) => {
                let starts_file = decoder.blocks().is_none_or(|blocks| blocks.starts_file);
                starts_file.then_some(self.split_offset)
            }
        }
    }

    /// Returns the offset from which lines of a compressed split belong to the next one; `None` while it is
    /// unknown, or if the file ends before.
    pub(crate) fn end(&self) -> Option<u64> {
        match &self.stream {
            Stream::Plain(_) => None,
            Stream::Compressed(decoder) => decoder
                .blocks()
                .and_then(|blocks| blocks.end)
                .map(|end| self.split_offset + end + 1),
        }
    }

    /// Reads at most `into.len()` bytes; at least one unless the file has ended.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> Result<usize, InputError> {
        let read = match &mut self.stream {
            Stream::Plain(file) => file.read(into),
            Stream::Compressed(decoder) => {
                let read = decoder.read(into);
                if let Some(Garbage { offset, bytes }) = decoder.take_garbage() {
                    let name = self.compression.map(|compression| compression.to_string());
                    print_error(format_args!(
                        "{}: ignored trailing garbage: {bytes} bytes after the {} data, from byte {offset}",
                        self.path.display(),
                        name.unwrap_or_default()
                    ));
                }
                read
            }
        };
        // Skipping a long way, or reading a huge record, is progress too.
        progress();
        read.map_err(|error| in_file(&self.path, self.compression, error))
    }

    fn discard(&mut self, mut bytes: u64) -> Result<(), InputError> {
        let mut discarded =
            vec![0; DISCARD_BYTES.min(usize::try_from(bytes).unwrap_or(DISCARD_BYTES))];
        while bytes > 0 {
            let wanted = discarded
                .len()
                .min(usize::try_from(bytes).unwrap_or(usize::MAX));
            let read = self.read(&mut discarded[..wanted])?;
            if read == 0 {
                break;
            }
            bytes -= read as u64;
        }
        Ok(())
    }
}

fn in_file(path: &Path, compression: Option<Compression>, error: ReadError) -> InputError {
    InputError::of_bytes(path, error, |path, offset, reason| match compression {
        Some(compression) => InputError::Damaged {
            path,
            compression,
            offset,
            reason,
        },
        None => InputError::BadTable {
            path,
            offset,
            reason,
        },
    })
}
