//! Where a writer of another crate leaves its bytes, to be taken from there after each row.
//!
//! Owns that place. Does not own what is written.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes that a writer holds one end of and a format the other.
#[derive(Debug, Default, Clone)]
pub(super) struct SharedBytes {
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl SharedBytes {
    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for SharedBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
