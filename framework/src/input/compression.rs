//! Compressed input: what is undone while reading, going by name, and what is refused because it is not.
//!
//! Owns the names and first bytes of compressions. Does not own decompression.

use std::fmt;
use std::io;
use std::path::Path;

use super::opening::open_path;
#[cfg(feature = "xz")]
use super::xz;
use super::{InputError, InputFile, Splitting, zstd};

/// A compression that is undone while reading. Files in it are read by one task, unless they consist
/// of blocks that can be found from anywhere: lines of bzip2, of xz with several blocks, and of zstd
/// with a seek table.
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
    /// `.bz2`, of any number of streams; with the feature `bzip2`.
    Bzip2,
    /// `.xz`, of any number of streams; with the feature `xz`.
    Xz,
    /// `.lz4`: frames, or the blocks that Hadoop writes; with the feature `lz4`.
    Lz4,
    /// `.snappy` and `.sz`: frames, or the blocks that Hadoop writes; with the feature `snappy`.
    Snappy,
}

/// A compression that this program undoes: how names end, and the first bytes.
struct Known {
    compression: Compression,
    extensions: &'static [&'static str],
    magic: &'static [u8],
}

const READ: &[Known] = &[
    Known { compression: Compression::Gzip, extensions: &["gz"], magic: b"\x1f\x8b\x08" },
    Known { compression: Compression::Zstd, extensions: &["zst"], magic: b"\x28\xb5\x2f\xfd" },
    #[cfg(feature = "bzip2")]
    Known { compression: Compression::Bzip2, extensions: &["bz2"], magic: b"BZh91AY&SY" },
    #[cfg(feature = "xz")]
    Known { compression: Compression::Xz, extensions: &["xz"], magic: b"\xfd7zXZ\0" },
    #[cfg(feature = "lz4")]
    Known { compression: Compression::Lz4, extensions: &["lz4"], magic: b"\x04\x22\x4d\x18" },
    #[cfg(feature = "snappy")]
    Known { compression: Compression::Snappy, extensions: &["snappy", "sz"], magic: b"\xff\x06\0\0sNaPpY" },
];

/// A compression that is known only to be refused: read as they are, such bytes would give an output without
/// a word that something is wrong.
struct Refused {
    name: &'static str,
    extensions: &'static [&'static str],
    /// The first bytes; none where a file can begin so by chance.
    magic: &'static [u8],
    undo: &'static str,
    /// The feature with which it is undone.
    feature: Option<&'static str>,
}

const REFUSED: &[Refused] = &[
    #[cfg(not(feature = "bzip2"))]
    Refused { feature: Some("bzip2"), ..refused("bzip2", &["bz2"], b"BZh91AY&SY", "bunzip2 -k") },
    #[cfg(not(feature = "xz"))]
    Refused { feature: Some("xz"), ..refused("xz", &["xz"], b"\xfd7zXZ\0", "unxz -k") },
    #[cfg(not(feature = "lz4"))]
    Refused { feature: Some("lz4"), ..refused("lz4", &["lz4"], b"\x04\x22\x4d\x18", "unlz4 -k") },
    #[cfg(not(feature = "snappy"))]
    Refused {
        feature: Some("snappy"),
        ..refused("snappy", &["snappy", "sz"], b"\xff\x06\0\0sNaPpY", "snzip -dk")
    },
    refused("bzip2", &["tbz2"], b"", "bunzip2 -k"),
    refused("xz", &["txz"], b"", "unxz -k"),
    refused("lzma", &["lzma"], b"", "unlzma -k"),
    refused("lzo", &["lzo"], b"\x89LZO\0\r\n\x1a\n", "lzop -d"),
    refused("brotli", &["br"], b"", "brotli -dk"),
    refused("zip", &["zip"], b"PK\x03\x04", "unzip"),
    refused("7z", &["7z"], b"7z\xbc\xaf\x27\x1c", "7z x"),
    refused("compress", &["Z"], b"", "gunzip -k"),
];

const fn refused(
    name: &'static str,
    extensions: &'static [&'static str],
    magic: &'static [u8],
    undo: &'static str,
) -> Refused {
    Refused { name, extensions, magic, undo, feature: None }
}

/// The level of compression is the fourth of them.
const BZIP2_MAGIC_LEVEL: usize = 3;
const MAGIC_BYTES_MAX: u64 = 10;

impl Compression {
    /// The compression that the name of a file stands for.
    pub fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?;
        let is = |name: &&str| extension.eq_ignore_ascii_case(name);
        READ.iter().find(|read| read.extensions.iter().any(is)).map(|read| read.compression)
    }
}

/// Where a file of lines may be cut: in a compression whose blocks are found from anywhere, if it
/// has several.
pub(crate) fn lines_splitting(path: &Path) -> Splitting {
    let several = match Compression::of(path) {
        None | Some(Compression::Bzip2) => true,
        Some(Compression::Zstd) => zstd::has_several_frames(path),
        #[cfg(feature = "xz")]
        Some(Compression::Xz) => xz::has_several_blocks(path),
        Some(_) => false,
    };
    match Compression::of(path) {
        Some(compression) if !several => Splitting::Compressed(compression),
        _ => Splitting::Anywhere,
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
    let named = Compression::of(path);
    // Decoders know the others by their first bytes, and blocks of Hadoop have none.
    if named.is_some_and(|named| !matches!(named, Compression::Lz4 | Compression::Snappy)) {
        return Ok(());
    }
    let mut first = first_bytes(path).map_err(|error| InputError::unreadable(path, error))?;
    if first.starts_with(b"BZh") && first.get(BZIP2_MAGIC_LEVEL).is_some_and(u8::is_ascii_digit) {
        first[BZIP2_MAGIC_LEVEL] = b'9';
    }
    if let Some(read) = READ.iter().find(|read| first.starts_with(read.magic)) {
        if named == Some(read.compression) {
            return Ok(());
        }
        let (path, compression) = (path.to_owned(), read.compression);
        return Err(InputError::Misnamed { path, compression, extension: read.extensions[0] });
    }
    match REFUSED.iter().find(|refused| !refused.magic.is_empty() && first.starts_with(refused.magic)) {
        Some(refused) => Err(refused.error(path)),
        None => Ok(()),
    }
}

/// A warning about compressed files without a byte, which no compressor writes.
pub(crate) fn about_empty(files: &[Vec<InputFile>]) -> Option<String> {
    let empty = files.iter().flatten().filter(|file| file.size == 0);
    let mut empty = empty.filter_map(|file| Some((file, Compression::of(&file.path)?)));
    let (first, compression) = empty.next()?;
    let others = match empty.count() {
        0 => String::new(),
        more => format!(" (and so have {more} more compressed files)"),
    };
    let first = first.path.display();
    Some(format!(
        "{first} has 0 bytes{others}, which is not valid {compression} data; it is read as an empty file"
    ))
}

/// As many as the longest magic has, or as there are.
fn first_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let file = open_path(path)?;
    let mut first = vec![0; file.length()?.min(MAGIC_BYTES_MAX) as usize];
    file.read_exact_at(&mut first, 0)?;
    Ok(first)
}

impl Refused {
    fn error(&self, path: &Path) -> InputError {
        InputError::NotDecompressed {
            path: path.to_owned(),
            compression: self.name,
            undo: self.undo,
            feature: self.feature,
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
            Compression::Bzip2 => "bzip2",
            Compression::Xz => "xz",
            Compression::Lz4 => "lz4",
            Compression::Snappy => "snappy",
        })
    }
}
