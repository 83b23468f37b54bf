//! The file interface of the parquet crate.

use std::io::{self, BufReader, Read};

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use crate::bytes::SharedBytes;

/// An open file that several readers share.
#[derive(Clone)]
pub(super) struct ParquetBytes {
    bytes: SharedBytes,
    length: u64,
}

/// A reader from an offset on.
pub(super) struct FromOffset {
    file: ParquetBytes,
    offset: u64,
}

impl ParquetBytes {
    pub(super) fn new(bytes: SharedBytes) -> io::Result<ParquetBytes> {
        let length = bytes.length()?;
        Ok(ParquetBytes { bytes, length })
    }

    /// Returns the error of the last failed read.
    pub(super) fn take_error(&self) -> Option<io::Error> {
        self.bytes.take_error()
    }
}

impl Length for ParquetBytes {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for ParquetBytes {
    type T = BufReader<FromOffset>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(BufReader::new(FromOffset {
            file: self.clone(),
            offset: start,
        }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let rest = self.length.saturating_sub(start);
        if length as u64 > rest {
            return Err(ParquetError::EOF(format!(
                "{length} bytes at byte {start}, but the file has only {rest} more"
            )));
        }
        let mut bytes = vec![0; length];
        self.bytes.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

impl Read for FromOffset {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.bytes.read_at(into, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}
