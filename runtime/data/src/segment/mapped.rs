//! A segment file as it lies in memory.
//!
//! Owns the mapping and the advice on it. Does not own what the bytes mean (`reader`), nor which of them come
//! next (`read_ahead`). Miri, which checks the data plane's unsafe code, knows neither mappings of files nor
//! advice: there the file is read, and the kernel is told nothing.
#![allow(unsafe_code)] // maps files, and advises on them

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};

use rustix::mm::{Advice, madvise};

#[cfg(not(miri))]
type Bytes = memmap2::Mmap;
#[cfg(miri)]
type Bytes = Vec<u8>;

/// The bytes of a sealed segment, which do not change.
#[derive(Debug)]
pub(super) struct Mapped(Bytes);

impl Mapped {
    #[cfg(not(miri))]
    pub(super) fn of(file: &File) -> io::Result<Mapped> {
        // SAFETY: the mapping is private to reading. Segments are immutable once sealed (see `reader` for
        // what a violation does), so the bytes behind the shared slice do not change while it lives.
        Ok(Mapped(unsafe { Bytes::map(file) }?))
    }

    #[cfg(miri)]
    pub(super) fn of(mut file: &File) -> io::Result<Mapped> {
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut file, &mut bytes)?;
        Ok(Mapped(bytes))
    }

    /// Tells the kernel what comes next, or what it may take back first.
    pub(super) fn advise(&self, range: Range<u64>, advice: Advice) -> io::Result<()> {
        let bytes = &self[range.start as usize..range.end as usize];
        if cfg!(miri) {
            return Ok(());
        }
        // SAFETY: the range lies inside the mapping, and no advice on a file changes what it holds.
        Ok(unsafe { madvise(bytes.as_ptr().cast_mut().cast(), bytes.len(), advice) }?)
    }
}

impl Deref for Mapped {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.0
    }
}
