//! Opening what is read: files of this machine, and objects in stores.
//!
//! Owns the seam between them and the readers of all formats, which read at offsets and know no more. Does
//! not own what is read ahead of them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use napreduce_live::StorageScheme;

use super::Split;
#[cfg(feature = "storage")]
use super::objects;

/// Bytes that are read at offsets.
pub(crate) trait PositionedRead: Send + Sync {
    /// Reads at most `into.len()` bytes that stand at `offset`, at least one unless they end before.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Bytes in all, as many as there are now.
    fn length(&self) -> io::Result<u64>;

    /// Why a read has failed, for whoever has passed through code that tells such errors from
    /// damaged data no more.
    #[cfg(feature = "parquet")]
    fn take_trouble(&self) -> Option<io::Error> {
        None
    }

    /// Fills all of `into`.
    fn read_exact_at(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        let mut filled = 0;
        while filled < into.len() {
            match self.read_at(&mut into[filled..], offset + filled as u64) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// What is open, for one reader or several.
pub(crate) type InputBytes = Arc<dyn PositionedRead>;

impl PositionedRead for File {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, into, offset)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_exact_at(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        FileExt::read_exact_at(self, into, offset)
    }
}

/// Opens what a split is of, in its version; `reads_on` for somebody who reads it from one end to the other,
/// and not here and there.
pub(crate) fn open_input(split: &Split, memory: usize, reads_on: bool) -> io::Result<InputBytes> {
    // Files need to know neither.
    let _ = (memory, reads_on);
    match StorageScheme::of(&split.path) {
        None => Ok(Arc::new(File::open(&split.path)?)),
        #[cfg(feature = "storage")]
        Some(_) => objects::open(split, memory, reads_on),
        #[cfg(not(feature = "storage"))]
        Some(scheme) => Err(no_store(scheme)),
    }
}

/// Opens what is there under a name now, for somebody who looks at a few bytes of it.
pub(crate) fn open_path(path: &Path) -> io::Result<InputBytes> {
    match StorageScheme::of(path) {
        None => Ok(Arc::new(File::open(path)?)),
        #[cfg(feature = "storage")]
        Some(_) => objects::open_found(path),
        #[cfg(not(feature = "storage"))]
        Some(scheme) => Err(no_store(scheme)),
    }
}

/// Such inputs are refused before anything is opened.
#[cfg(not(feature = "storage"))]
fn no_store(scheme: StorageScheme) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, format!("this program reads no {scheme}"))
}
