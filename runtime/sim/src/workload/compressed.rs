//! Compressed workload files and traces: gzip is read, other formats are refused by name.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use napreduce_protocol::{open_named, read_text};

/// Maximum length of the text of a workload file.
const WORKLOAD_BYTES_MAX: u64 = 256 << 20;

/// The first bytes of gzip data.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Other formats: their first bytes, their name, and a command that decompresses a file.
const REFUSED: [(&[u8], &str, &str); 5] = [
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd", "zstd -d"),
    (&[0xfd, b'7', b'z', b'X', b'Z', 0], "xz", "xz -d"),
    (&[0x04, 0x22, 0x4d, 0x18], "lz4", "lz4 -d"),
    (b"BZh", "bzip2", "bzip2 -d"),
    (b"PK\x03\x04", "zip", "unzip"),
];

/// The first bytes of a block of bzip2 data, after a header of four bytes. A text may begin with the header.
const BZIP2_BLOCK: [u8; 6] = [0x31, 0x41, 0x59, 0x26, 0x53, 0x59];

/// Returns a reader of the text in `from`, which may be compressed with gzip.
///
/// ```
/// use std::io::Read;
///
/// let mut text = String::new();
/// napreduce_sim::decompressed(&b"seed = 1"[..])?.read_to_string(&mut text)?;
/// assert_eq!(text, "seed = 1");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// Errors of the reader, and [`io::ErrorKind::InvalidData`] for another compression, with its name.
pub fn decompressed<'a>(from: impl Read + 'a) -> io::Result<Box<dyn BufRead + 'a>> {
    let mut from = BufReader::new(from);
    let head = from.fill_buf()?;
    if head.starts_with(&GZIP) {
        return Ok(Box::new(BufReader::new(MultiGzDecoder::new(from))));
    }
    for (magic, name, command) in REFUSED {
        let is_text = name == "bzip2" && head.get(4..10) != Some(&BZIP2_BLOCK[..]);
        if head.starts_with(magic) && !is_text {
            let message = format!("it is compressed with {name}; decompress it first: {command}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
    }
    Ok(Box::new(from))
}

/// Reads the text of a workload file, which may be compressed with gzip.
///
/// # Errors
/// Fails for a file that cannot be read, is not a regular file, is not text, or is longer than 256 MiB.
pub fn read_workload_text(path: &Path) -> io::Result<String> {
    read_text(decompressed(open_named(path)?)?, WORKLOAD_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn read(bytes: &[u8]) -> io::Result<String> {
        let mut text = String::new();
        decompressed(bytes)?.read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn gzip_of_several_members_is_read_to_its_end() {
        let both = [gzip("one\n"), gzip("two\n")].concat();
        assert_eq!(read(&both).unwrap(), "one\ntwo\n");
        assert!(read(&both[..both.len() - 3]).is_err(), "it is cut");
    }

    #[test]
    fn plain_text_is_read_as_it_is() {
        for text in ["", "a", "seed = 1\n", "BZh9 is a job\t1\n"] {
            assert_eq!(read(text.as_bytes()).unwrap(), text);
        }
    }

    #[test]
    fn other_compressions_are_refused_by_name() {
        let bzip2 = [b"BZh9", &BZIP2_BLOCK[..]].concat();
        for (bytes, name) in [
            (&[0x28, 0xb5, 0x2f, 0xfd, 0x24][..], "zstd"),
            (&[0xfd, b'7', b'z', b'X', b'Z', 0, 0], "xz"),
            (&[0x04, 0x22, 0x4d, 0x18, 0x64], "lz4"),
            (&bzip2, "bzip2"),
            (b"PK\x03\x04..", "zip"),
        ] {
            let error = read(bytes).unwrap_err().to_string();
            assert!(
                error.contains(&format!("compressed with {name};")),
                "{error}"
            );
        }
    }
}
