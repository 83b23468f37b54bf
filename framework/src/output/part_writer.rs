//! The part file of one attempt: buffered writes, running digest, counts.
//!
//! Owns the bytes between a format and the file, and the first error, which it keeps until somebody asks. Does not own
//! formats, names or promotion.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use napreduce_live::{PartOutput, TaskError};
use xxhash_rust::xxh3::Xxh3;

/// Bytes gathered before a write. Larger writes measured no faster, smaller ones cost system calls.
const BUFFER_BYTES: usize = 1 << 20;

/// A part file that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write output {path}: {source}{}", advice(.source))]
pub struct OutputError {
    /// The part file, under its temporary name.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull => "; free some space there or choose another --output",
        io::ErrorKind::QuotaExceeded => "; raise the quota or choose another --output",
        io::ErrorKind::PermissionDenied => "; check the permissions of the output directory",
        _ => "",
    }
}

impl From<OutputError> for TaskError {
    fn from(error: OutputError) -> TaskError {
        let message = error.to_string();
        match error.source.kind() {
            io::ErrorKind::InvalidData => TaskError::task(message),
            // Another try would fill the same disk again.
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => TaskError::fatal(message),
            _ => TaskError::retryable(message),
        }
    }
}

pub(crate) struct PartWriter {
    file: File,
    path: PathBuf,
    buffer: Vec<u8>,
    digest: Xxh3,
    bytes: u64,
    pub(crate) records: u64,
    error: Option<io::Error>,
}

impl PartWriter {
    pub(crate) fn create(path: &Path) -> Result<PartWriter, OutputError> {
        let file = File::create(path).map_err(|source| OutputError { path: path.to_owned(), source })?;
        Ok(PartWriter {
            file,
            path: path.to_owned(),
            buffer: Vec::new(),
            digest: Xxh3::new(),
            bytes: 0,
            records: 0,
            error: None,
        })
    }

    /// Where a format appends one record; `end_record` follows.
    #[inline]
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    #[inline]
    pub(crate) fn end_record(&mut self) {
        self.records += 1;
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush();
        }
    }

    pub(crate) fn fail(&mut self, error: io::Error) {
        self.error.get_or_insert(error);
    }

    fn flush(&mut self) {
        if self.error.is_none() {
            self.digest.update(&self.buffer);
            self.bytes += self.buffer.len() as u64;
            if let Err(error) = self.file.write_all(&self.buffer) {
                self.error = Some(error);
            }
        }
        self.buffer.clear();
    }

    pub(crate) fn check(&mut self) -> Result<(), OutputError> {
        match self.error.take() {
            None => Ok(()),
            Some(source) => Err(OutputError { path: self.path.clone(), source }),
        }
    }

    pub(crate) fn finish(mut self) -> Result<PartOutput, OutputError> {
        self.flush();
        self.check()?;
        Ok(PartOutput { records: self.records, bytes: self.bytes, digest: self.digest.digest() })
    }
}
