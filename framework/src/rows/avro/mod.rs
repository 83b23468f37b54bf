//! Rows in Avro container files, read.
//!
//! Owns the input format, and the compressions of blocks. Does not own the container (`reader`) nor
//! values (`datum`).

mod datum;
mod reader;
mod schema;

use std::io::Read;
use std::marker::PhantomData;
use std::path::Path;

use flate2::read::DeflateDecoder;

pub use self::reader::AvroRowReader;
use super::TypedRow;
use crate::input::{BadRows, InputError, InputFormat, Split, Splitting};

/// Rows of Avro container files as values of the serde type `R`; made by [`Job::avro`](crate::Job::avro).
///
/// A struct takes the fields that its own are called like; others are passed over. A union with null is an
/// `Option`, an enum a unit variant or a text. Logical types are not looked at: a date is its number of days,
/// a decimal its bytes. Blocks may be in deflate and zstandard, and in snappy, bzip2 and xz with the features of
/// these names. A block belongs to the split that holds the first byte of the marker before it.
///
/// ```
/// use napreduce::rows::AvroRows;
/// use napreduce::testing::JobTest;
/// use napreduce::{Job, borrowed};
/// use serde::Deserialize;
///
/// #[derive(Deserialize)]
/// struct Word<'a> {
///     word: &'a str,
/// }
///
/// // A file with one block of two records, whose one field is a text.
/// let schema = br#"{"type":"record","name":"W","fields":[{"name":"word","type":"string"}]}"#;
/// let head = [b"Obj\x01\x02\x16avro.schema", &[schema.len() as u8 * 2 | 0x80, 1][..], schema, b"\0"].concat();
/// let file = [&head[..], b"a marker of 16 B", b"\x04\x0e\x04to\x06not", b"a marker of 16 B"].concat();
///
/// let words = || Job::input(AvroRows::<borrowed!(Word)>::default()).map_only(|row, out| out.emit(row.word, ()));
/// let test = JobTest::new(words).input(file);
/// assert_eq!(test.run().text(), "to\nnot\n");
/// test.assert_preemption_safe();
/// ```
pub struct AvroRows<R> {
    bad_rows: BadRows,
    row: PhantomData<fn() -> R>,
}

impl<R> Default for AvroRows<R> {
    fn default() -> Self {
        AvroRows { bad_rows: BadRows::default(), row: PhantomData }
    }
}

impl<R: TypedRow> InputFormat for AvroRows<R> {
    type Record<'a> = R::Of<'a>;
    type Reader = AvroRowReader<R>;

    fn splitting(&self, _: &Path) -> Splitting {
        Splitting::Anywhere
    }

    fn check(&self, path: &Path) -> Result<(), InputError> {
        reader::check(path)
    }

    fn open_at(&self, split: &Split, offset: u64, memory: usize) -> Result<AvroRowReader<R>, InputError> {
        AvroRowReader::open(self.bad_rows, split, offset, memory)
    }

    fn take_bad_rows(&mut self, bad_rows: BadRows) {
        self.bad_rows = bad_rows;
    }
}

/// How blocks are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Codec {
    Null,
    Deflate,
    Zstandard,
    #[cfg(feature = "snappy")]
    Snappy,
    #[cfg(feature = "bzip2")]
    Bzip2,
    #[cfg(feature = "xz")]
    Xz,
}

impl Codec {
    fn of(name: &[u8]) -> Result<Codec, String> {
        match name {
            b"null" => Ok(Codec::Null),
            b"deflate" => Ok(Codec::Deflate),
            b"zstandard" => Ok(Codec::Zstandard),
            #[cfg(feature = "snappy")]
            b"snappy" => Ok(Codec::Snappy),
            #[cfg(feature = "bzip2")]
            b"bzip2" => Ok(Codec::Bzip2),
            #[cfg(feature = "xz")]
            b"xz" => Ok(Codec::Xz),
            #[allow(unreachable_patterns, reason = "with all features none is left")]
            b"snappy" | b"bzip2" | b"xz" => {
                let name = String::from_utf8_lossy(name);
                Err(format!(
                    "its blocks are compressed with {name}; build this program with the feature {name} of napreduce"
                ))
            }
            other => Err(format!(
                "its blocks are compressed with {:?}, which is not read; write it with deflate or zstandard",
                String::from_utf8_lossy(other)
            )),
        }
    }

    /// The content of a block, of at most `limit` bytes.
    fn decompress(self, stored: Vec<u8>, limit: usize) -> Result<Vec<u8>, String> {
        match self {
            Codec::Null => Ok(stored),
            Codec::Deflate => read_up_to(DeflateDecoder::new(&stored[..]), limit),
            Codec::Zstandard => {
                let decoder = ruzstd::decoding::StreamingDecoder::new(&stored[..]);
                read_up_to(decoder.map_err(|error| error.to_string())?, limit)
            }
            #[cfg(feature = "snappy")]
            Codec::Snappy => {
                let (compressed, sum) =
                    stored.split_last_chunk::<4>().ok_or("a block is shorter than its checksum")?;
                let length = snap::raw::decompress_len(compressed).map_err(|error| error.to_string())?;
                if length > limit {
                    return Err(too_large(limit));
                }
                let content = snap::raw::Decoder::new().decompress_vec(compressed);
                let content = content.map_err(|error| error.to_string())?;
                let mut crc = flate2::Crc::new();
                crc.update(&content);
                if crc.sum() != u32::from_be_bytes(*sum) {
                    return Err("a block does not have its checksum".to_owned());
                }
                Ok(content)
            }
            #[cfg(feature = "bzip2")]
            Codec::Bzip2 => read_up_to(bzip2::bufread::MultiBzDecoder::new(&stored[..]), limit),
            #[cfg(feature = "xz")]
            Codec::Xz => read_up_to(crate::input::xz_in_memory(&stored, limit), limit),
        }
    }
}

fn read_up_to(decoder: impl Read, limit: usize) -> Result<Vec<u8>, String> {
    let mut content = Vec::new();
    decoder.take(limit as u64 + 1).read_to_end(&mut content).map_err(|error| error.to_string())?;
    if content.len() > limit { Err(too_large(limit)) } else { Ok(content) }
}

#[cold]
fn too_large(limit: usize) -> String {
    let limit = napreduce_live::ByteSize::new(limit as u64);
    format!("a block is larger than {limit}, the memory of the task; raise --task-memory")
}
