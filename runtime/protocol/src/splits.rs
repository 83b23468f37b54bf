//! What one map task reads.
//!
//! Owns the plain data. Does not own how inputs become splits (the framework).

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What one map task reads: a byte range of a file or, of small files, several of them one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputSplit {
    /// At least one, in the order of the input.
    pub parts: Vec<Split>,
    /// Of each part's file, in their order, when the splits were planned; none where nobody looked.
    #[serde(default)]
    pub stamps: Vec<FileStamp>,
}

/// By what a file is known again: whoever writes to it changes the time, whoever replaces it the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStamp {
    /// When it was written to last, in nanoseconds since 1970.
    pub modified_nanos: u64,
    /// Its number in its file system.
    pub inode: u64,
}

impl InputSplit {
    /// Bytes in all parts.
    pub fn length(&self) -> u64 {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.length))
    }
}

impl From<Split> for InputSplit {
    fn from(part: Split) -> InputSplit {
        InputSplit { parts: vec![part], stamps: Vec::new() }
    }
}

/// It names its first file, and how many more there are: `logs/0001 and 99 more files`.
impl fmt::Display for InputSplit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((first, more)) = self.parts.split_first() else { return formatter.write_str("no file") };
        first.path.display().fmt(formatter)?;
        match more.len() {
            0 => Ok(()),
            1 => formatter.write_str(" and 1 more file"),
            count => write!(formatter, " and {count} more files"),
        }
    }
}

/// A byte range of an input file, read by one map task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// The input file.
    #[serde(with = "crate::path_bytes")]
    pub path: PathBuf,
    /// Where the range starts, in bytes of the file as it is stored.
    pub offset: u64,
    /// Its length in bytes.
    pub length: u64,
    /// Length of the whole file in bytes, when the splits were planned. What is added to it later is
    /// not read.
    pub file_length: u64,
    /// The version of an object in a store: nothing else is read. A file has none, and neither needs one that
    /// was made by hand.
    #[serde(default)]
    pub version: Option<String>,
}

impl Split {
    /// The split that is a whole file of `file_length` bytes.
    pub fn whole(path: &Path, file_length: u64) -> Split {
        Split { path: path.to_owned(), offset: 0, length: file_length, file_length, version: None }
    }

    /// The first byte behind it.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }
}
