//! The files to validate and their division into chunks.
//!
//! Owns checking that files can hold records. Does not own which files of a directory count, nor reading
//! them.

use super::ValidateError;
use crate::inputs;
use crate::tera::RECORD_BYTES;
use std::fs;
use std::path::PathBuf;

/// Bytes read in one piece: whole records and whole pages, about half of a core's second-level cache.
const CHUNK_BYTES: u64 = 512_000;

/// A file with whole records.
pub(super) struct InputFile {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
}

impl InputFile {
    fn examine(path: PathBuf) -> Result<Self, ValidateError> {
        let refused = |source| ValidateError::Refused { path: path.clone(), source };
        let metadata = fs::metadata(&path).map_err(refused)?;
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

/// A piece of one file, at least one record long.
pub(super) struct Chunk<'a> {
    pub(super) file: &'a InputFile,
    pub(super) offset: u64,
    pub(super) length: usize,
}

impl Chunk<'_> {
    /// The number in its file of the chunk's first record.
    pub(super) fn first_record(&self) -> u64 {
        self.offset / RECORD_BYTES as u64
    }
}

/// The files that these paths stand for, in order.
pub(super) fn list(named: &[PathBuf]) -> Result<Vec<InputFile>, ValidateError> {
    let mut files = Vec::new();
    for input in named {
        let refused = |source| ValidateError::Refused { path: input.clone(), source };
        let paths = inputs::list(input).map_err(refused)?;
        if paths.is_empty() {
            return Err(ValidateError::NoFiles { directory: input.clone() });
        }
        for path in paths {
            files.push(InputFile::examine(path)?);
        }
    }
    Ok(files)
}

/// The chunks of all files, in order.
pub(super) fn chunks(files: &[InputFile]) -> Vec<Chunk<'_>> {
    let mut chunks = Vec::new();
    for file in files {
        let mut offset = 0;
        while offset < file.bytes {
            // At most `CHUNK_BYTES`, so it fits.
            let length = CHUNK_BYTES.min(file.bytes - offset) as usize;
            chunks.push(Chunk { file, offset, length });
            offset += CHUNK_BYTES;
        }
    }
    chunks
}
