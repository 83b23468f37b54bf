//! Splits: which bytes of which file each map task reads.
//!
//! Owns the cutting of files by size and the reasons why a file is not cut. Does not own what a format makes of a split.

use std::path::{Path, PathBuf};

use super::{Compression, InputError, InputFile, InputFormat};

/// A byte range of one file, to be read by one map task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitRange {
    /// The file.
    pub path: PathBuf,
    /// Where the range begins, in bytes of the file as it is stored.
    pub offset: u64,
    /// Bytes in the range.
    pub length: u64,
    /// Bytes in the file when the splits were planned. What is added to it later is not read.
    pub file_length: u64,
}

impl SplitRange {
    /// The range that is a whole file.
    pub fn whole(path: &Path, file_length: u64) -> Self {
        SplitRange { path: path.to_owned(), offset: 0, length: file_length, file_length }
    }

    /// The first byte behind the range.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }
}

/// Where a file may be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Splitting {
    /// At any byte; the readers find the boundaries of records.
    Anywhere,
    /// At multiples of so many bytes, of which the file must be a multiple too.
    Multiples(usize),
    /// Nowhere, because decompression begins at the start.
    Compressed(Compression),
    /// Nowhere, because the file is one record.
    Whole,
}

/// Cuts `files` into splits of about `split_size` bytes, in the order of the files. A last piece of at most a tenth of
/// `split_size` joins the piece before. An empty file has no split, unless a file is a record.
pub fn plan_splits<F: InputFormat>(
    files: &[InputFile],
    split_size: u64,
    format: &F,
) -> Result<Vec<SplitRange>, InputError> {
    let mut splits = Vec::new();
    for file in files {
        match format.splitting(&file.path) {
            Splitting::Anywhere => cut(file, split_size.max(1), &mut splits),
            Splitting::Multiples(length) => {
                cut(file, checked_multiple(file, split_size, length)?, &mut splits);
            }
            Splitting::Compressed(_) if file.size == 0 => {}
            Splitting::Compressed(_) | Splitting::Whole => {
                splits.push(SplitRange::whole(&file.path, file.size));
            }
        }
    }
    Ok(splits)
}

/// The split size in whole records, at least one.
fn checked_multiple(file: &InputFile, split_size: u64, length: usize) -> Result<u64, InputError> {
    if length == 0 {
        return Err(InputError::NoRecordLength);
    }
    let bytes = length as u64;
    if !file.size.is_multiple_of(bytes) {
        return Err(InputError::PartialRecord { path: file.path.clone(), size: file.size, length });
    }
    Ok((split_size / bytes).max(1) * bytes)
}

fn cut(file: &InputFile, split_size: u64, splits: &mut Vec<SplitRange>) {
    let mut offset = 0;
    while offset < file.size {
        let rest = file.size - offset;
        let length = if rest > split_size.saturating_add(split_size / 10) { split_size } else { rest };
        splits.push(SplitRange { path: file.path.clone(), offset, length, file_length: file.size });
        offset += length;
    }
}

/// Why files larger than `split_size` are read by one task each: `data.gz is compressed with gzip and cannot be split`.
pub fn unsplit_reasons<F: InputFormat>(files: &[InputFile], split_size: u64, format: &F) -> Vec<String> {
    files
        .iter()
        .filter(|file| file.size > split_size)
        .filter_map(|file| match format.splitting(&file.path) {
            Splitting::Compressed(compression) => {
                Some(format!("{} is compressed with {compression} and cannot be split", file.path.display()))
            }
            Splitting::Anywhere | Splitting::Multiples(_) | Splitting::Whole => None,
        })
        .collect()
}
