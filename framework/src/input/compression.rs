//! Compressed input, recognised by name.
//!
//! Owns which names mean which compression. Does not own decompression.

use std::fmt;
use std::path::Path;

/// A compression that is undone while reading. Such files cannot be split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// `.gz`, of any number of members.
    Gzip,
    /// `.zst`, of any number of frames.
    Zstd,
}

impl Compression {
    /// The compression that the name of a file stands for.
    pub fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?;
        [(Compression::Gzip, "gz"), (Compression::Zstd, "zst")]
            .into_iter()
            .find_map(|(compression, name)| extension.eq_ignore_ascii_case(name).then_some(compression))
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
        })
    }
}
