//! Segment files in memory. Miri supports neither file mappings nor madvise: there the file is read.
#![allow(unsafe_code)] // maps files and calls madvise

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};

use rustix::mm::{Advice, madvise};

#[cfg(not(miri))]
type Bytes = memmap2::Mmap;
#[cfg(miri)]
type Bytes = Vec<u8>;

/// The mapped bytes of a sealed segment.
#[derive(Debug)]
pub(super) struct Mapped(Bytes);

impl Mapped {
    #[cfg(not(miri))]
    pub(super) fn new(file: &File) -> io::Result<Mapped> {
        // SAFETY: the mapping is read-only. Segments are immutable once sealed (`reader` describes a
        // violation), so the bytes behind the shared slice do not change while it lives.
        Ok(Mapped(unsafe { Bytes::map(file) }?))
    }

    #[cfg(miri)]
    pub(super) fn new(mut file: &File) -> io::Result<Mapped> {
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut file, &mut bytes)?;
        Ok(Mapped(bytes))
    }

    /// Advises the kernel on a range of the file.
    pub(super) fn advise(&self, range: Range<u64>, advice: Advice) -> io::Result<()> {
        let bytes = &self[range.start as usize..range.end as usize];
        if cfg!(miri) {
            return Ok(());
        }
        // SAFETY: the range lies inside the mapping, and no advice changes the contents of a file.
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
