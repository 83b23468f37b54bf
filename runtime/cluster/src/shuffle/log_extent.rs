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
    /// Returns the length of the log, and at most `most` of its bytes from `offset` in the log on. An empty log need
    /// not have a file.
    pub(crate) fn read(&self, offset: u64, most: u64) -> io::Result<(u64, Vec<u8>)> {
        if self.bytes == Some(0) {
            return Ok((0, Vec::new()));
        }
        self.read_file(offset, most).map_err(|error| {
            let message = format!("cannot read {}: {error}", self.path.display());
            io::Error::new(error.kind(), message)
        })
    }

    fn read_file(&self, offset: u64, most: u64) -> io::Result<(u64, Vec<u8>)> {
        let file = File::open(&self.path)?;
        let length = match self.bytes {
            Some(bytes) => bytes,
            None => file.metadata()?.len().saturating_sub(self.offset),
        };
        let wanted = length.saturating_sub(offset).min(most);
        let mut bytes = vec![0; wanted as usize];
        let start = self.offset + offset;
        let mut filled = 0;
        while filled < bytes.len() {
            let count = file.read_at(&mut bytes[filled..], start + filled as u64)?;
            if count == 0 {
                break;
            }
            filled += count;
        }
        bytes.truncate(filled);
        Ok((length, bytes))
    }
}
