//! The reused buffer between a source and its records. Unconsumed bytes are moved to the front. The buffer
//! grows for a huge record and shrinks afterwards.

use super::error::InputError;
use super::source::Source;

/// Usual size of a buffer.
pub(crate) const BUFFER_BYTES: usize = 256 << 10;
/// Share of the memory limit for a buffer of usual size.
const MEMORY_SHARE: usize = 16;
/// A buffer doubles up to this size and then grows by a quarter, since unused room counts as memory too.
const DOUBLED_BYTES: usize = 4 << 20;
/// Maximum size after a huge record, as a multiple of the usual size.
const SLACK: usize = 16;

/// A buffer of a file's bytes.
pub(crate) struct Window {
    /// Fully initialised; `start..filled` is read but not consumed.
    bytes: Vec<u8>,
    start: usize,
    filled: usize,
    /// Offset of `bytes` in the file.
    base: u64,
    usual: usize,
    limit: usize,
    ended: bool,
}

impl Window {
    /// Creates a buffer for the bytes from `offset` on, of at most `limit` bytes. At most `expected` bytes
    /// will be read, if that is known. Its size is a multiple of `unit` bytes, and at least one.
    pub(crate) fn new(offset: u64, expected: Option<u64>, unit: usize, limit: usize) -> Self {
        let share = (limit / MEMORY_SHARE).clamp(1, BUFFER_BYTES);
        // One extra byte of room, to detect the end without growing.
        let expected = expected
            .and_then(|bytes| usize::try_from(bytes).ok())
            .unwrap_or(usize::MAX);
        let usual =
            (share.min(expected.saturating_add(1)).div_ceil(unit) * unit).min(limit.max(unit));
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

    /// Returns the bytes read but not consumed.
    #[inline]
    pub(crate) fn available(&self) -> &[u8] {
        &self.bytes[self.start..self.filled]
    }

    /// Returns the offset of [`available`](Window::available) in the file.
    #[inline]
    pub(crate) fn offset(&self) -> u64 {
        self.base + self.start as u64
    }

    /// Returns whether the source has ended, so that no bytes follow the available ones.
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    /// Consumes the first `bytes` of the available ones.
    #[inline]
    pub(crate) fn take(&mut self, bytes: usize) {
        self.start += bytes;
    }

    /// Reads until the buffer is full, the source ends, or the file is read up to `end`; in the last case at
    /// least a few bytes.
    ///
    /// # Errors
    /// Fails with `LineTooLong` if the buffer is full at its maximum size.
    pub(crate) fn fill(&mut self, source: &mut Source, end: u64) -> Result<(), InputError> {
        if !self.make_room() {
            // The last byte is for the newline.
            let path = source.path().to_owned();
            let limit = self.limit as u64 - 1;
            return Err(InputError::LineTooLong {
                path,
                offset: self.offset(),
                limit,
            });
        }
        let mut read_before = false;
        while self.filled < self.bytes.len() && !self.ended {
            let position = self.base + self.filled as u64;
            if position >= end && read_before {
                break;
            }
            let wanted = usize::try_from(end.saturating_sub(position)).unwrap_or(usize::MAX);
            let free = self.bytes.len() - self.filled;
            // After the end of a split at most one record is needed.
            let wanted = if wanted == 0 {
                free.min(BUFFER_BYTES / 4)
            } else {
                free.min(wanted)
            };
            let read = source.read(&mut self.bytes[self.filled..self.filled + wanted])?;
            self.filled += read;
            self.ended = read == 0;
            read_before = true;
        }
        Ok(())
    }

    /// Moves the unconsumed bytes to the front, and grows the buffer if they fill it.
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
