//! The reused buffer between a source and the records in it.
//!
//! What is left over is carried to its front; it grows for one huge record and shrinks afterwards.

use super::error::InputError;
use super::source::Source;

/// What a buffer usually holds; it is larger only for a record that needs it.
pub(crate) const BUFFER_BYTES: usize = 256 << 10;
/// The share of the memory limit that a buffer usually takes at most.
const MEMORY_SHARE: usize = 16;
/// A buffer doubles up to here and then grows by a quarter: what a huge record does not need counts in its
/// memory too.
const DOUBLED_BYTES: usize = 4 << 20;
/// How much larger than usual a buffer stays after a huge record.
const SLACK: usize = 16;

/// A buffer-full of a file.
pub(crate) struct Window {
    /// All of it is initialised; `start..filled` is read and not taken yet.
    bytes: Vec<u8>,
    start: usize,
    filled: usize,
    /// Where in the file `bytes` begins.
    base: u64,
    usual: usize,
    limit: usize,
    ended: bool,
}

impl Window {
    /// A buffer for what begins at `offset`, of at most `limit` bytes. No more than `expected` bytes will be
    /// read, if that is known. It holds a multiple of `unit` bytes, and at least one.
    pub(crate) fn new(offset: u64, expected: Option<u64>, unit: usize, limit: usize) -> Self {
        let share = (limit / MEMORY_SHARE).clamp(1, BUFFER_BYTES);
        // One byte of room more than is there, to see the end without growing.
        let expected = expected.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(usize::MAX);
        let usual = (share.min(expected.saturating_add(1)).div_ceil(unit) * unit).min(limit.max(unit));
        Window {
            bytes: vec![0; usual],
            start: 0,
            filled: 0,
            base: offset,
            usual,
            limit: limit.max(unit),
            ended: false,
        }
    }

    /// What is read and not taken.
    #[inline]
    pub(crate) fn available(&self) -> &[u8] {
        &self.bytes[self.start..self.filled]
    }

    /// Where in the file [`available`](Window::available) begins.
    #[inline]
    pub(crate) fn offset(&self) -> u64 {
        self.base + self.start as u64
    }

    /// Whether the source has ended, so that nothing will follow what is available.
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    /// Marks the first `bytes` of what is available as done.
    #[inline]
    pub(crate) fn take(&mut self, bytes: usize) {
        self.start += bytes;
    }

    /// Reads on until the buffer is full, the source ends, or the file is read up to `end`; then at least a
    /// little.
    ///
    /// # Errors
    /// `LineTooLong` where the buffer is as large as it may get and full.
    pub(crate) fn fill(&mut self, source: &mut Source, end: u64) -> Result<(), InputError> {
        if !self.make_room() {
            // The last byte is for the newline.
            let (path, limit) = (source.path().to_owned(), self.limit as u64 - 1);
            return Err(InputError::LineTooLong { path, offset: self.offset(), limit });
        }
        let mut read_before = false;
        while self.filled < self.bytes.len() && !self.ended {
            let position = self.base + self.filled as u64;
            if position >= end && read_before {
                break;
            }
            let wanted = usize::try_from(end.saturating_sub(position)).unwrap_or(usize::MAX);
            let free = self.bytes.len() - self.filled;
            // Behind the end of a split one record at most is wanted.
            let wanted = if wanted == 0 { free.min(BUFFER_BYTES / 4) } else { free.min(wanted) };
            let read = source.read(&mut self.bytes[self.filled..self.filled + wanted])?;
            self.filled += read;
            self.ended = read == 0;
            read_before = true;
        }
        Ok(())
    }

    /// Brings what is left over to the front, and grows where it fills the buffer.
    fn make_room(&mut self) -> bool {
        let left = self.start..self.filled;
        if left.len() < self.usual && self.bytes.len() > self.usual.saturating_mul(SLACK) {
            let mut smaller = vec![0; self.usual];
            smaller[..left.len()].copy_from_slice(&self.bytes[left.clone()]);
            self.bytes = smaller;
        } else if left.start > 0 {
            self.bytes.copy_within(left.clone(), 0);
        } else if left.len() == self.bytes.len() {
            if self.bytes.len() >= self.limit {
                return false;
            }
            let held = self.bytes.len();
            let more = if held < DOUBLED_BYTES { held } else { held / 4 };
            let larger = held.saturating_add(more).min(self.limit);
            self.bytes.reserve_exact(larger - held);
            self.bytes.resize(larger, 0);
        }
        self.base += left.start as u64;
        self.start = 0;
        self.filled = left.len();
        true
    }
}
