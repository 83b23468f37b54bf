//! Compressions of files, recognized by name and by their first bytes. Unsupported ones are rejected: a job
//! that reads compressed bytes directly would silently produce wrong output.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::Path;

/// A compression that is decompressed while a file is read. One task reads such a file, unless it has blocks
/// that can be located: lines of bzip2, of xz with several blocks, and of zstd with a seek table.
///
/// ```
/// use std::path::Path;
///
/// use napreduce_connectors::compression::Compression;
///
/// let named = Compression::of(Path::new("log.txt.gz"));
/// assert_eq!(named, cfg!(feature = "gzip").then_some(Compression::Gzip));
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
    /// `.lz4`: frames, or Hadoop's blocks; with the feature `lz4`.
    Lz4,
    /// `.snappy` and `.sz`: frames, or Hadoop's blocks; with the feature `snappy`.
    Snappy,
}

/// A compression that a feature supports.
struct Known {
    compression: Compression,
    /// Whether this program is built with the feature.
    is_read: bool,
    extensions: &'static [&'static str],
    magic: &'static [u8],
    /// The command that decompresses a file.
    undo: &'static str,
}

use Compression::{Bzip2, Gzip, Lz4, Snappy, Xz, Zstd};

#[rustfmt::skip]
const KNOWN: [Known; 6] = [
    Known { compression: Gzip, is_read: cfg!(feature = "gzip"), extensions: &["gz"], magic: b"\x1f\x8b\x08", undo: "gunzip -k" },
    Known { compression: Zstd, is_read: cfg!(feature = "zstd"), extensions: &["zst"], magic: b"\x28\xb5\x2f\xfd", undo: "unzstd" },
    Known { compression: Bzip2, is_read: cfg!(feature = "bzip2"), extensions: &["bz2"], magic: b"BZh91AY&SY", undo: "bunzip2 -k" },
    Known { compression: Xz, is_read: cfg!(feature = "xz"), extensions: &["xz"], magic: b"\xfd7zXZ\0", undo: "unxz -k" },
    Known { compression: Lz4, is_read: cfg!(feature = "lz4"), extensions: &["lz4"], magic: b"\x04\x22\x4d\x18", undo: "unlz4 -k" },
    Known { compression: Snappy, is_read: cfg!(feature = "snappy"), extensions: &["snappy", "sz"], magic: b"\xff\x06\0\0sNaPpY", undo: "snzip -dk" },
];

/// An unsupported compression.
struct Unread {
    name: &'static str,
    extensions: &'static [&'static str],
    /// Empty if other files may begin with it.
    magic: &'static [u8],
    undo: &'static str,
}

const UNREAD: [Unread; 8] = [
    Unread {
        name: "bzip2",
        extensions: &["tbz2"],
        magic: b"",
        undo: "bunzip2 -k",
    },
    Unread {
        name: "xz",
        extensions: &["txz"],
        magic: b"",
        undo: "unxz -k",
    },
    Unread {
        name: "lzma",
        extensions: &["lzma"],
        magic: b"",
        undo: "unlzma -k",
    },
    Unread {
        name: "lzo",
        extensions: &["lzo"],
        magic: b"\x89LZO\0\r\n\x1a\n",
        undo: "lzop -d",
    },
    Unread {
        name: "brotli",
        extensions: &["br"],
        magic: b"",
        undo: "brotli -dk",
    },
    Unread {
        name: "zip",
        extensions: &["zip"],
        magic: b"PK\x03\x04",
        undo: "unzip",
    },
    Unread {
        name: "7z",
        extensions: &["7z"],
        magic: b"7z\xbc\xaf\x27\x1c",
        undo: "7z x",
    },
    Unread {
        name: "compress",
        extensions: &["Z"],
        magic: b"",
        undo: "gunzip -k",
    },
];

/// Bytes that [`Support::of_first_bytes`] needs.
pub const FIRST_BYTES: usize = 10;

/// Zstd and lz4 frames with a magic number in this range contain no data.
pub(crate) const SKIPPABLE_MAGIC: RangeInclusive<u32> = 0x184D_2A50..=0x184D_2A5F;

/// Returns the length of the skippable frame of zstd or lz4 that begins with these bytes, if one does.
///
/// ```
/// use napreduce_connectors::compression::skippable_bytes;
///
/// assert_eq!(skippable_bytes(b"\x50\x2a\x4d\x18\x03\0\0\0"), Some(11));
/// assert_eq!(skippable_bytes(b"P*M text"), None);
/// ```
pub fn skippable_bytes(first: &[u8]) -> Option<u64> {
    let (magic, rest) = first.split_first_chunk::<4>()?;
    let length = rest.first_chunk::<4>()?;
    let is_skippable = SKIPPABLE_MAGIC.contains(&u32::from_le_bytes(*magic));
    is_skippable.then(|| 8 + u64::from(u32::from_le_bytes(*length)))
}

/// Position of the level in the header of a bzip2 stream.
const BZIP2_LEVEL: usize = 3;

/// The support for a compression in this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// Files named `*.extension` are decompressed.
    Read {
        /// The compression.
        compression: Compression,
        /// The usual extension.
        extension: &'static str,
    },
    /// The compression is unsupported.
    Refused {
        /// Its name.
        name: &'static str,
        /// The command that decompresses a file.
        undo: &'static str,
        /// The feature of `napreduce` that supports it, if there is one.
        feature: Option<&'static str>,
    },
}

impl Compression {
    /// Returns the supported compression of a file by its name.
    pub fn of(path: &Path) -> Option<Self> {
        match Support::of_name(path) {
            Some(Support::Read { compression, .. }) => Some(compression),
            _ => None,
        }
    }

    /// Returns the name of the compression and of its feature.
    pub fn feature(self) -> &'static str {
        match self {
            Gzip => "gzip",
            Zstd => "zstd",
            Bzip2 => "bzip2",
            Xz => "xz",
            Lz4 => "lz4",
            Snappy => "snappy",
        }
    }
}

impl Known {
    fn support(&self) -> Support {
        let Known {
            compression,
            is_read,
            extensions,
            undo,
            ..
        } = *self;
        let name = compression.feature();
        if is_read {
            Support::Read {
                compression,
                extension: extensions[0],
            }
        } else {
            Support::Refused {
                name,
                undo,
                feature: Some(name),
            }
        }
    }
}

impl Unread {
    fn support(&self) -> Support {
        Support::Refused {
            name: self.name,
            undo: self.undo,
            feature: None,
        }
    }
}

impl Support {
    /// Returns the compression of a file by its name.
    pub fn of_name(path: &Path) -> Option<Support> {
        let extension = path.extension()?;
        // An extension of one letter is case-sensitive.
        let is = |name: &&str| {
            if name.len() == 1 {
                extension == *name
            } else {
                extension.eq_ignore_ascii_case(name)
            }
        };
        let known = KNOWN
            .iter()
            .find(|known| known.extensions.iter().any(is))
            .map(Known::support);
        known.or_else(|| {
            UNREAD
                .iter()
                .find(|unread| unread.extensions.iter().any(is))
                .map(Unread::support)
        })
    }

    /// Returns the compression of a file by its first bytes.
    pub fn of_first_bytes(first: &[u8]) -> Option<Support> {
        let mut first = first.to_vec();
        if first.starts_with(b"BZh") && first.get(BZIP2_LEVEL).is_some_and(u8::is_ascii_digit) {
            first[BZIP2_LEVEL] = b'9';
        }
        let known = KNOWN
            .iter()
            .find(|known| first.starts_with(known.magic))
            .map(Known::support);
        known.or_else(|| {
            let is = |unread: &&Unread| !unread.magic.is_empty() && first.starts_with(unread.magic);
            UNREAD.iter().find(is).map(Unread::support)
        })
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.feature())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compression_without_feature_is_rejected() {
        for (name, first, compression, is_read) in [
            ("a.gz", &b"\x1f\x8b\x08"[..], Gzip, cfg!(feature = "gzip")),
            ("a.ZST", b"\x28\xb5\x2f\xfd", Zstd, cfg!(feature = "zstd")),
            ("a.bz2", b"BZh11AY&SY", Bzip2, cfg!(feature = "bzip2")),
            ("a.xz", b"\xfd7zXZ\0", Xz, cfg!(feature = "xz")),
            ("a.lz4", b"\x04\x22\x4d\x18", Lz4, cfg!(feature = "lz4")),
            (
                "a.sz",
                b"\xff\x06\0\0sNaPpY",
                Snappy,
                cfg!(feature = "snappy"),
            ),
        ] {
            assert_eq!(
                Compression::of(Path::new(name)),
                is_read.then_some(compression)
            );
            for support in [
                Support::of_name(Path::new(name)),
                Support::of_first_bytes(first),
            ] {
                match support {
                    Some(Support::Read {
                        compression: read, ..
                    }) => assert!(is_read && read == compression),
                    Some(Support::Refused { feature, .. }) => {
                        assert!(!is_read);
                        assert_eq!(feature, Some(compression.feature()));
                    }
                    None => panic!("{name} is not known"),
                }
            }
        }
        assert_eq!(
            Support::of_name(Path::new("a.z")),
            None,
            "only .Z is a compression"
        );
        assert_eq!(Support::of_first_bytes(b"text"), None);
    }
}
