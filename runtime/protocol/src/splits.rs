//! The input of one map task.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The input of a map task: a byte range of a file, or several small files in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputSplit {
    /// At least one, in input order.
    pub parts: Vec<Split>,
    /// The stamp of each part's file when the splits were planned; empty if unknown.
    #[serde(default)]
    pub stamps: Vec<FileStamp>,
}

/// A file's identity: writing changes the time, replacing changes the inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStamp {
    /// Modification time, in nanoseconds since 1970.
    pub modified_nanos: u64,
    /// Inode number.
    pub inode: u64,
}

impl InputSplit {
    /// Bytes in all parts.
    pub fn length(&self) -> u64 {
        self.parts
            .iter()
            .fold(0, |sum, part| sum.saturating_add(part.length))
    }
}

impl From<Split> for InputSplit {
    fn from(part: Split) -> InputSplit {
        InputSplit {
            parts: vec![part],
            stamps: Vec::new(),
        }
    }
}

/// Prints the first file and the number of others: `logs/0001 and 99 more files`.
impl fmt::Display for InputSplit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((first, more)) = self.parts.split_first() else {
            return formatter.write_str("no file");
        };
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
    /// Length of the whole file when the splits were planned. Data appended later is not read.
    pub file_length: u64,
    /// The version of a stored object; only that is read. `None` for files and for splits made by hand.
    #[serde(default)]
    pub version: Option<String>,
}

impl Split {
    /// Returns a split of a whole file of `file_length` bytes.
    pub fn whole(path: &Path, file_length: u64) -> Split {
        Split {
            path: path.to_owned(),
            offset: 0,
            length: file_length,
            file_length,
            version: None,
        }
    }

    /// The end of the range, exclusive.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }
}
