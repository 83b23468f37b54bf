//! Opening of inputs: local files, and objects in stores.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use napreduce_connectors::bytes::SharedBytes;
use napreduce_protocol::{Split, StorageScheme};

#[cfg(feature = "storage")]
use super::objects;

/// Opens the file or object of a split, in its version; `reads_on` is set for sequential reading.
pub(crate) fn open_input(split: &Split, memory: usize, reads_on: bool) -> io::Result<SharedBytes> {
    // Files ignore both.
    let _ = (memory, reads_on);
    match StorageScheme::from_path(&split.path) {
        None => Ok(Arc::new(File::open(&split.path)?)),
        #[cfg(feature = "storage")]
        Some(_) => objects::open(split, memory, reads_on),
        #[cfg(not(feature = "storage"))]
        Some(scheme) => Err(no_store(scheme)),
    }
}

/// Opens the current file or object at a path, to read a few bytes.
pub(crate) fn open_path(path: &Path) -> io::Result<SharedBytes> {
    match StorageScheme::from_path(path) {
        None => Ok(Arc::new(File::open(path)?)),
        #[cfg(feature = "storage")]
        Some(_) => objects::open_found(path),
        #[cfg(not(feature = "storage"))]
        Some(scheme) => Err(no_store(scheme)),
    }
}

/// Such inputs are rejected before anything is opened.
#[cfg(not(feature = "storage"))]
fn no_store(scheme: StorageScheme) -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        format!("this program does not support {scheme}"),
    )
}
