//! A log file that a task process appends to. The process writes it directly, so the limit is enforced by
//! occasional truncation.

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
    /// Creates a log; `file` must be empty and open for appending.
    pub(super) fn new(file: File, bytes_max: u64) -> BoundedLog {
        BoundedLog {
            file,
            bytes_max,
            was_cut: false,
        }
    }

    pub(super) fn set_empty(&self) -> io::Result<()> {
        self.file.set_len(0)
    }

    pub(super) fn bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Returns the last bytes and the length before them.
    pub(super) fn last(&self, most: u64) -> io::Result<(Vec<u8>, u64)> {
        let bytes = self.bytes()?;
        let before = bytes.saturating_sub(most);
        let mut last = vec![0; usize::try_from(bytes - before).unwrap_or_default()];
        self.file.read_exact_at(&mut last, before)?;
        Ok((last, before))
    }

    /// Keeps the beginning, with a note that the rest is missing. The process appends, so concurrent writes
    /// leave no hole and are truncated the next time.
    pub(super) fn keep_bound(&mut self) -> io::Result<()> {
        let farewell = format!(
            "\n[napreduce: only the first {} bytes of this stream are kept; the rest was dropped]\n",
            self.bytes_max
        );
        let farewell_bytes = if self.was_cut {
            farewell.len() as u64
        } else {
            0
        };
        if self.bytes()? <= self.bytes_max.saturating_add(farewell_bytes) {
            return Ok(());
        }
        self.file.set_len(self.bytes_max)?;
        self.was_cut = true;
        self.file.write_all(farewell.as_bytes())
    }
}
