//! Files to validate and their division into chunks.

use super::ValidateError;
use crate::inputs;
use crate::tera::RECORD_BYTES;
use std::fs;
use std::path::PathBuf;

/// Bytes read at once: whole records and whole pages, about half of a core's second-level cache.
const CHUNK_BYTES: u64 = 512_000;

/// A file of whole records.
pub(super) struct InputFile {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
}

impl InputFile {
    fn examine(path: PathBuf) -> Result<Self, ValidateError> {
        let io_error = |source| ValidateError::Io {
            path: path.clone(),
            source,
        };
        let metadata = fs::metadata(&path).map_err(io_error)?;
        let bytes = metadata.len();
        if !metadata.is_file() {
            return Err(ValidateError::NotFile { path });
        }
        if !bytes.is_multiple_of(RECORD_BYTES as u64) {
            return Err(ValidateError::Length { path, bytes });
        }
        Ok(Self { path, bytes })
    }
}

/// A section of one file, at least one record long.
pub(super) struct Chunk<'a> {
    pub(super) file: &'a InputFile,
    pub(super) offset: u64,
    pub(super) length: usize,
}

impl Chunk<'_> {
    /// Returns the number in its file of the first record.
    pub(super) fn first_record(&self) -> u64 {
        self.offset / RECORD_BYTES as u64
    }
}

/// Lists the files of the input paths, in order.
pub(super) fn list(paths: &[PathBuf]) -> Result<Vec<InputFile>, ValidateError> {
    let mut files = Vec::new();
    for input in paths {
        let io_error = |source| ValidateError::Io {
            path: input.clone(),
            source,
        };
        let files_in_input = inputs::list(input).map_err(io_error)?;
        if files_in_input.is_empty() {
            return Err(ValidateError::NoFiles {
                directory: input.clone(),
            });
        }
        for path in files_in_input {
            files.push(InputFile::examine(path)?);
        }
    }
    Ok(files)
}

/// Divides all files into chunks, in order.
pub(super) fn chunks(files: &[InputFile]) -> Vec<Chunk<'_>> {
    let mut chunks = Vec::new();
    for file in files {
        let mut offset = 0;
        while offset < file.bytes {
            // At most `CHUNK_BYTES`, so it fits in `usize`.
            let length = CHUNK_BYTES.min(file.bytes - offset) as usize;
            chunks.push(Chunk {
                file,
                offset,
                length,
            });
            offset += CHUNK_BYTES;
        }
    }
    chunks
}
