//! Compressed input: what is undone while reading, going by name, and what is refused because it is not.
//!
//! Owns the names and first bytes of compressions. Does not own decompression.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::InputError;

/// A compression that is undone while reading. Such files cannot be split.
///
/// ```
/// use std::path::Path;
///
/// use napreduce::input::Compression;
///
/// assert_eq!(Compression::of(Path::new("log.txt.gz")), Some(Compression::Gzip));
/// assert_eq!(Compression::of(Path::new("log.txt")), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// `.gz`, of any number of members.
    Gzip,
    /// `.zst`, of any number of frames.
    Zstd,
}

const READ: [(Compression, &str, &[u8]); 2] =
    [(Compression::Gzip, "gz", b"\x1f\x8b\x08"), (Compression::Zstd, "zst", b"\x28\xb5\x2f\xfd")];

/// A compression that is known only to be refused: read as they are, such bytes would give an output without a word
/// that something is wrong.
struct Refused {
    name: &'static str,
    extensions: &'static [&'static str],
    /// The first bytes; none where a file can begin so by chance.
    magic: &'static [u8],
    undo: &'static str,
}

const REFUSED: [Refused; 10] = [
    Refused { name: "bzip2", extensions: &["bz2", "tbz2"], magic: b"BZh91AY&SY", undo: "bunzip2 -k" },
    Refused { name: "xz", extensions: &["xz", "txz"], magic: b"\xfd7zXZ\0", undo: "unxz -k" },
    Refused { name: "lzma", extensions: &["lzma"], magic: b"", undo: "unlzma -k" },
    Refused { name: "lz4", extensions: &["lz4"], magic: b"\x04\x22\x4d\x18", undo: "unlz4 -k" },
    Refused { name: "lzo", extensions: &["lzo"], magic: b"\x89LZO\0\r\n\x1a\n", undo: "lzop -d" },
    Refused {
        name: "snappy",
        extensions: &["snappy", "sz"],
        magic: b"\xff\x06\0\0sNaPpY",
        undo: "snzip -dk",
    },
    Refused { name: "brotli", extensions: &["br"], magic: b"", undo: "brotli -dk" },
    Refused { name: "zip", extensions: &["zip"], magic: b"PK\x03\x04", undo: "unzip" },
    Refused { name: "7z", extensions: &["7z"], magic: b"7z\xbc\xaf\x27\x1c", undo: "7z x" },
    Refused { name: "compress", extensions: &["Z"], magic: b"", undo: "gunzip -k" },
];

/// The level of compression is the fourth of them.
const BZIP2_MAGIC_LEVEL: usize = 3;
const MAGIC_BYTES_MAX: usize = 10;

impl Compression {
    /// The compression that the name of a file stands for.
    pub fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?;
        READ.iter().find(|(_, name, _)| extension.eq_ignore_ascii_case(name)).map(|(known, ..)| *known)
    }
}

/// Refuses a file whose name says that it is in a compression that is not undone while reading.
pub(super) fn check_name(path: &Path) -> Result<(), InputError> {
    let Some(extension) = path.extension() else { return Ok(()) };
    // Of one letter only the capital one is a name that everybody knows.
    let is =
        |name: &&str| if name.len() == 1 { extension == *name } else { extension.eq_ignore_ascii_case(name) };
    match REFUSED.iter().find(|refused| refused.extensions.iter().any(&is)) {
        Some(refused) => Err(refused.error(path)),
        None => Ok(()),
    }
}

/// Refuses it also if its first bytes say so, or say that it should have another name.
pub(super) fn check(path: &Path) -> Result<(), InputError> {
    check_name(path)?;
    if Compression::of(path).is_some() {
        return Ok(());
    }
    let mut first = Vec::with_capacity(MAGIC_BYTES_MAX);
    let read = File::open(path).and_then(|file| file.take(MAGIC_BYTES_MAX as u64).read_to_end(&mut first));
    read.map_err(|error| InputError::unreadable(path, error))?;
    if let Some((compression, extension, _)) = READ.iter().find(|(.., magic)| first.starts_with(magic)) {
        let (path, compression) = (path.to_owned(), *compression);
        return Err(InputError::Misnamed { path, compression, extension });
    }
    if first.starts_with(b"BZh") && first.get(BZIP2_MAGIC_LEVEL).is_some_and(u8::is_ascii_digit) {
        first[BZIP2_MAGIC_LEVEL] = b'9';
    }
    match REFUSED.iter().find(|refused| !refused.magic.is_empty() && first.starts_with(refused.magic)) {
        Some(refused) => Err(refused.error(path)),
        None => Ok(()),
    }
}

impl Refused {
    fn error(&self, path: &Path) -> InputError {
        InputError::NotDecompressed { path: path.to_owned(), compression: self.name, undo: self.undo }
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
