//! The location of a log in a file, and reading pieces of it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// A log: a file or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogExtent {
    pub(crate) path: PathBuf,
    /// Its start in the file.
    pub(crate) offset: u64,
    /// Its length; `None` for up to the end of the file.
    pub(crate) bytes: Option<u64>,
}

impl LogExtent {
    /// Returns its length and at most `most` bytes from `offset` on. An empty log need not have a file.
    pub(crate) fn read(&self, offset: u64, most: u64) -> io::Result<(u64, Vec<u8>)> {
        if self.bytes == Some(0) {
            return Ok((0, Vec::new()));
        }
        let named = |error: io::Error| {
            io::Error::new(
                error.kind(),
                format!("cannot read {}: {error}", self.path.display()),
            )
        };
        self.read_file(offset, most).map_err(named)
    }

    fn read_file(&self, offset: u64, most: u64) -> io::Result<(u64, Vec<u8>)> {
        let file = File::open(&self.path)?;
        let length = match self.bytes {
            Some(bytes) => bytes,
            None => file.metadata()?.len().saturating_sub(self.offset),
        };
        let mut bytes = vec![0; length.saturating_sub(offset).min(most) as usize];
        let mut have = 0;
        while have < bytes.len() {
            match file.read_at(&mut bytes[have..], self.offset + offset + have as u64)? {
                0 => break,
                count => have += count,
            }
        }
        bytes.truncate(have);
        Ok((length, bytes))
    }
}
