//! Random access to bytes: local files, and objects in stores.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Bytes with random access.
pub trait ReadAt: Send + Sync {
    /// Reads at most `into.len()` bytes at `offset`; at least one unless the bytes end there.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Returns the current number of bytes.
    fn length(&self) -> io::Result<u64>;

    /// Returns the error of the last failed read, for decoders that report every error as damaged data.
    fn take_error(&self) -> Option<io::Error> {
        None
    }

    /// Fills all of `into`.
    fn read_exact_at(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        let mut filled = 0;
        while filled < into.len() {
            match self.read_at(&mut into[filled..], offset + filled as u64) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Bytes shared by several readers.
pub type SharedBytes = Arc<dyn ReadAt>;

impl ReadAt for File {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, into, offset)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_exact_at(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        FileExt::read_exact_at(self, into, offset)
    }
}

/// The error for bytes that cannot be read or decoded. The caller adds the name of the file.
#[derive(Debug)]
pub enum ReadError {
    /// The system or the store failed.
    Unreadable(io::Error),
    /// The bytes end before their planned end.
    Shortened {
        /// The number of bytes when the file was opened.
        planned: u64,
        /// The current number of bytes.
        found: u64,
    },
    /// A decoder needs too much memory.
    WindowTooLarge {
        /// The required bytes.
        window: u64,
    },
    /// A part of the file exceeds the memory.
    TooLarge {
        /// Position in stored bytes.
        offset: u64,
        /// The part of the file, as in "a block".
        what: String,
    },
    /// The bytes are invalid.
    Damaged {
        /// Position in stored bytes.
        offset: u64,
        /// The end of the sentence "data at byte N ...".
        reason: String,
    },
}

/// A stored file that is read sequentially or at offsets, up to its planned length.
pub struct StoredFile {
    bytes: SharedBytes,
    position: u64,
    planned: u64,
}

impl StoredFile {
    /// Creates a reader of a file of `planned` bytes, starting at `position`.
    pub fn new(bytes: SharedBytes, position: u64, planned: u64) -> Self {
        StoredFile {
            bytes,
            position,
            planned,
        }
    }

    /// Creates a reader of the file in its current length.
    pub fn whole(bytes: SharedBytes) -> Result<Self, ReadError> {
        let planned = bytes.length().map_err(ReadError::Unreadable)?;
        Ok(StoredFile::new(bytes, 0, planned))
    }

    /// Returns the offset of the next read.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns the planned number of bytes.
    pub fn length(&self) -> u64 {
        self.planned
    }

    /// Moves to `position`.
    pub fn seek(&mut self, position: u64) {
        self.position = position;
    }

    /// Fills all of `into` from `position` on; the next read continues after it.
    pub fn read_exact_at(&mut self, into: &mut [u8], position: u64) -> Result<(), ReadError> {
        self.position = position;
        let mut filled = 0;
        while filled < into.len() {
            let read = self.read(&mut into[filled..])?;
            if read == 0 {
                return Err(ReadError::Shortened {
                    planned: position + into.len() as u64,
                    found: self.position,
                });
            }
            filled += read;
        }
        Ok(())
    }

    /// Reads at most `into.len()` bytes, at least one unless the planned end is reached.
    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, ReadError> {
        let left =
            usize::try_from(self.planned.saturating_sub(self.position)).unwrap_or(usize::MAX);
        let wanted = into.len().min(left);
        if wanted == 0 {
            return Ok(0);
        }
        loop {
            match self.bytes.read_at(&mut into[..wanted], self.position) {
                Ok(0) => {
                    return Err(ReadError::Shortened {
                        planned: self.planned,
                        found: self.position,
                    });
                }
                Ok(read) => {
                    self.position += read as u64;
                    return Ok(read);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(ReadError::Unreadable(error)),
            }
        }
    }
}

impl ReadError {
    /// Creates the error for invalid bytes at `offset`.
    #[cold]
    pub fn damaged(offset: u64, reason: impl Into<String>) -> Self {
        ReadError::Damaged {
            offset,
            reason: reason.into(),
        }
    }

    /// Converts the error of a read at `offset`, in a file of `planned` bytes.
    #[cold]
    pub fn of_read(planned: u64, offset: u64, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => ReadError::Shortened {
                planned,
                found: offset,
            },
            _ => ReadError::Unreadable(error),
        }
    }
}
