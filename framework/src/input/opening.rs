//! Opening what is read: files of this machine, and objects in stores.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

#[cfg(any(feature = "avro", feature = "parquet", feature = "sequence-file"))]
use napreduce_connectors::bytes::ReadAt;
use napreduce_connectors::bytes::SharedBytes;
#[cfg(any(feature = "avro", feature = "parquet", feature = "sequence-file"))]
use napreduce_live::progress;
use napreduce_live::{Split, StorageScheme};

#[cfg(any(feature = "avro", feature = "parquet", feature = "sequence-file"))]
use super::error::InputError;
#[cfg(feature = "storage")]
use super::objects;

/// Opens what a split is of, in its version; `reads_on` for somebody who reads it from one end to the other,
/// and not here and there.
pub(crate) fn open_input(split: &Split, memory: usize, reads_on: bool) -> io::Result<SharedBytes> {
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

/// Opens what is read here and there. Each read counts as progress: a long way to a block is not a standstill.
#[cfg(any(feature = "avro", feature = "parquet", feature = "sequence-file"))]
pub(crate) fn open_watched(split: &Split, memory: usize) -> Result<SharedBytes, InputError> {
    let bytes = open_input(split, memory, false);
    Ok(Arc::new(Watched(bytes.map_err(|error| InputError::unreadable(&split.path, error))?)))
}

#[cfg(any(feature = "avro", feature = "parquet", feature = "sequence-file"))]
struct Watched(SharedBytes);

#[cfg(any(feature = "avro", feature = "parquet", feature = "sequence-file"))]
impl ReadAt for Watched {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        progress();
        self.0.read_at(into, offset)
    }

    fn length(&self) -> io::Result<u64> {
        self.0.length()
    }

    fn take_error(&self) -> Option<io::Error> {
        self.0.take_error()
    }
}

/// Opens what is there under a name now, for somebody who looks at a few bytes of it.
pub(crate) fn open_path(path: &Path) -> io::Result<SharedBytes> {
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
