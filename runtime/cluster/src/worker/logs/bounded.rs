//! The file that a task process appends to.
//!
//! Owns its bound, kept by cutting it now and then, since the process writes it itself.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

/// One stream of one attempt.
#[derive(Debug)]
pub(super) struct BoundedLog {
    pub(super) file: File,
    bytes_max: u64,
    was_cut: bool,
}

impl BoundedLog {
    /// `file` is empty, and was opened to be appended to.
    pub(super) fn new(file: File, bytes_max: u64) -> BoundedLog {
        BoundedLog { file, bytes_max, was_cut: false }
    }

    pub(super) fn set_empty(&self) -> io::Result<()> {
        self.file.set_len(0)
    }

    pub(super) fn bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// The last bytes, and how many come before them.
    pub(super) fn last(&self, most: u64) -> io::Result<(Vec<u8>, u64)> {
        let bytes = self.bytes()?;
        let before = bytes.saturating_sub(most);
        let mut last = vec![0; usize::try_from(bytes - before).unwrap_or_default()];
        self.file.read_exact_at(&mut last, before)?;
        Ok((last, before))
    }

    /// The beginning is kept and says that the rest is not. What the process appends meanwhile is cut the
    /// next time: it appends, so there is no hole.
    pub(super) fn keep_bound(&mut self) -> io::Result<()> {
        let farewell = format!(
            "\n[napreduce: only the first {} bytes of this stream are kept; the rest was dropped]\n",
            self.bytes_max
        );
        let said = if self.was_cut { farewell.len() as u64 } else { 0 };
        if self.bytes()? <= self.bytes_max.saturating_add(said) {
            return Ok(());
        }
        self.file.set_len(self.bytes_max)?;
        self.was_cut = true;
        self.file.write_all(farewell.as_bytes())
    }
}
