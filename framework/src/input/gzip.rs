//! Gzip input.
//!
//! Owns the decompression of all members of a file, one after another, and the words for what is wrong with
//! it. Does not own the file.

use std::io::{ErrorKind, Read};

use flate2::bufread::MultiGzDecoder;

use super::Compression;
use super::source::{PlainFile, Trouble};
use super::stored::Stored;

/// The decompressed bytes of a gzip file.
pub(super) struct GzipStream {
    decoder: MultiGzDecoder<Stored>,
}

impl GzipStream {
    pub(super) fn new(file: PlainFile) -> Self {
        GzipStream { decoder: MultiGzDecoder::new(Stored::new(file)) }
    }

    /// Compressed bytes taken so far.
    pub(super) fn position(&self) -> u64 {
        self.decoder.get_ref().position()
    }

    pub(super) fn read(&mut self, into: &mut [u8]) -> Result<usize, Trouble> {
        loop {
            match self.decoder.read(into) {
                Ok(read) => return Ok(read),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let stored = self.decoder.get_mut();
                    return Err(stored.take_trouble().unwrap_or_else(|| damaged(stored.position(), &error)));
                }
            }
        }
    }
}

#[cold]
fn damaged(offset: u64, error: &std::io::Error) -> Trouble {
    let reason = match error.kind() {
        ErrorKind::UnexpectedEof => "ends too early; the file is incomplete".to_owned(),
        _ => format!("is not valid ({error})"),
    };
    Trouble::Damaged { compression: Compression::Gzip, offset, reason }
}
