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
        if wanted == 0 {
            // A reader that wants to know the length may ask from any offset.
            return Ok((length, Vec::new()));
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_is_known_from_any_offset() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("log");
        std::fs::write(&path, "before|one two").expect("written");
        let log = LogExtent {
            path,
            offset: 7,
            bytes: None,
        };
        assert_eq!(log.read(0, 3).expect("read"), (7, b"one".to_vec()));
        assert_eq!(log.read(4, 9).expect("read"), (7, b"two".to_vec()));
        for offset in [7, 8, u64::MAX] {
            assert_eq!(log.read(offset, 9).expect("read"), (7, Vec::new()));
        }
    }
}
