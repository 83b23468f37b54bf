//! Input from Hadoop SequenceFiles: the types of keys and values. The file format is in
//! `napreduce_connectors::sequence_file`.
//!
//! ```
//! use napreduce::Job;
//!
//! // Files of (LongWritable, Text) with any compression.
//! let job = Job::sequence_file::<i64, String>().map_only(|(number, text), out| out.emit(number, text));
//! # let _ = job;
//! ```

use std::marker::PhantomData;
use std::path::Path;

use napreduce_connectors::sequence_file::{self, SequenceFile, take_number};
use napreduce_task::ReadPosition;

use crate::input::{InputError, InputFormat, RecordReader, Split, Splitting, container};

/// Records per batch.
const BATCH_RECORDS: u64 = 1024;

/// Records of SequenceFiles, as pairs of key and value; made by
/// [`Job::sequence_file`](crate::Job::sequence_file).
///
/// Records and blocks may be compressed by Hadoop's DefaultCodec and GzipCodec, and by its ZStandardCodec,
/// BZip2Codec, Lz4Codec and SnappyCodec with the features `zstd`, `bzip2`, `lz4` and `snappy`. Records belong
/// to the split that holds the first byte of the marker
/// before them.
///
/// ```
/// use napreduce::Job;
/// use napreduce::sequence_file::SequenceFiles;
///
/// let job = Job::input(SequenceFiles::<String, i32>::default()).map_only(|(word, count), out| out.emit(word, count));
/// # let _ = job;
/// ```
pub struct SequenceFiles<K, V> {
    types: PhantomData<fn() -> (K, V)>,
}

impl<K, V> Default for SequenceFiles<K, V> {
    fn default() -> Self {
        SequenceFiles { types: PhantomData }
    }
}

impl<K: Writable, V: Writable> InputFormat for SequenceFiles<K, V> {
    type Record<'a> = (K::Of<'a>, V::Of<'a>);
    type Reader = SequenceReader<K, V>;

    fn splitting(&self, _: &Path) -> Splitting {
        Splitting::Anywhere
    }

    fn check(&self, path: &Path) -> Result<(), InputError> {
        container::check(path, sequence_file::check)
    }

    fn open_at(
        &self,
        split: &Split,
        offset: u64,
        memory: usize,
    ) -> Result<SequenceReader<K, V>, InputError> {
        SequenceReader::open(split, offset, memory)
    }
}

type Pair<'a, K, V> = (<K as Writable>::Of<'a>, <V as Writable>::Of<'a>);

/// Reads [`SequenceFiles`].
pub struct SequenceReader<K, V> {
    file: SequenceFile,
    split: Split,
    memory: usize,
    position: ReadPosition,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K: Writable, V: Writable> SequenceReader<K, V> {
    fn open(split: &Split, offset: u64, memory: usize) -> Result<Self, InputError> {
        let bytes = container::open(split, memory)?;
        let range = split.offset..split.end();
        let position = ReadPosition::new(range.clone(), 0..split.length);
        position.set(offset);
        let skipped = offset.saturating_sub(split.offset);
        let file = SequenceFile::open(bytes, split.file_length, range, skipped, memory);
        let file = file.map_err(|error| container::in_file(&split.path, memory, error))?;
        if let Some((keys, values)) = file.classes() {
            for (what, found, wanted) in [("keys", keys, K::CLASS), ("values", values, V::CLASS)] {
                if found != wanted {
                    let reason = format!("its {what} are {found}, but this job reads {wanted}");
                    return Err(InputError::BadTable {
                        path: split.path.clone(),
                        offset: 0,
                        reason,
                    });
                }
            }
        }
        Ok(SequenceReader {
            file,
            split: split.clone(),
            memory,
            position,
            types: PhantomData,
        })
    }
}

impl<K: Writable, V: Writable> RecordReader<SequenceFiles<K, V>> for SequenceReader<K, V> {
    fn read_batch<E: From<InputError>>(
        &mut self,
        each: &mut impl FnMut(Pair<'_, K, V>) -> Result<(), E>,
    ) -> Result<bool, E> {
        let SequenceReader {
            file,
            split,
            memory,
            position,
            ..
        } = self;
        for _ in 0..BATCH_RECORDS {
            let record = file.next_record();
            let record = record.map_err(|error| container::in_file(&split.path, *memory, error))?;
            let Some(record) = record else {
                return Ok(false);
            };
            let damaged = |reason| InputError::BadTable {
                path: split.path.clone(),
                offset: record.at,
                reason: format!("it is damaged: {reason}"),
            };
            each((
                K::decode(record.key).map_err(damaged)?,
                V::decode(record.value).map_err(damaged)?,
            ))?;
            position.set(position.get() + 1);
        }
        Ok(true)
    }

    fn offset(&self) -> u64 {
        self.position.get()
    }

    fn place(&self) -> String {
        let number = self.position.get() - self.split.offset + 1;
        match self.split.offset {
            0 => format!("record {number}"),
            offset => format!("record {number} after byte {offset}"),
        }
    }

    fn consumed(&self) -> u64 {
        self.file.consumed()
    }

    fn position(&self) -> Option<ReadPosition> {
        Some(self.position.clone())
    }
}

/// A Hadoop type of keys and values: `String` is Text, `Vec<u8>` BytesWritable, `i32` IntWritable, `i64`
/// LongWritable, `()` NullWritable. Implement it for further types.
///
/// ```
/// use napreduce::sequence_file::Writable;
///
/// assert_eq!(i32::decode(&[0, 0, 1, 0]), Ok(256));
/// assert_eq!(String::decode(b"\x02be"), Ok("be"));
///
/// struct Double;
///
/// impl Writable for Double {
///     const CLASS: &'static str = "org.apache.hadoop.io.DoubleWritable";
///     type Of<'a> = f64;
///
///     fn decode(bytes: &[u8]) -> Result<f64, String> {
///         let bytes = bytes.try_into().map_err(|_| format!("a double of {} bytes", bytes.len()))?;
///         Ok(f64::from_be_bytes(bytes))
///     }
/// }
/// # assert_eq!(Double::decode(&1.5_f64.to_be_bytes()), Ok(1.5));
/// # assert!(Double::CLASS.ends_with("DoubleWritable"));
/// ```
pub trait Writable: 'static {
    /// The class name in files.
    const CLASS: &'static str;

    /// The type of a received record; it may borrow from the reader's buffer.
    type Of<'a>;

    /// Decodes a value; the error describes invalid bytes.
    fn decode(bytes: &[u8]) -> Result<Self::Of<'_>, String>;
}

impl Writable for String {
    const CLASS: &'static str = "org.apache.hadoop.io.Text";
    type Of<'a> = &'a str;

    fn decode(bytes: &[u8]) -> Result<&str, String> {
        let mut rest = bytes;
        let length = take_number(&mut rest).ok_or("a text without its length")?;
        if usize::try_from(length) != Ok(rest.len()) {
            return Err(format!(
                "a text whose header claims {length} of {} bytes",
                rest.len()
            ));
        }
        std::str::from_utf8(rest).map_err(|_| "a text is not UTF-8".to_owned())
    }
}

impl Writable for Vec<u8> {
    const CLASS: &'static str = "org.apache.hadoop.io.BytesWritable";
    type Of<'a> = &'a [u8];

    fn decode(bytes: &[u8]) -> Result<&[u8], String> {
        match bytes.split_first_chunk() {
            Some((length, rest)) if u32::from_be_bytes(*length) as usize == rest.len() => Ok(rest),
            _ => Err(format!(
                "a length that does not match the {} bytes",
                bytes.len()
            )),
        }
    }
}

impl Writable for i32 {
    const CLASS: &'static str = "org.apache.hadoop.io.IntWritable";
    type Of<'a> = i32;

    fn decode(bytes: &[u8]) -> Result<i32, String> {
        let number = bytes.try_into().map(i32::from_be_bytes);
        number.map_err(|_| format!("an int of {} bytes", bytes.len()))
    }
}

impl Writable for i64 {
    const CLASS: &'static str = "org.apache.hadoop.io.LongWritable";
    type Of<'a> = i64;

    fn decode(bytes: &[u8]) -> Result<i64, String> {
        let number = bytes.try_into().map(i64::from_be_bytes);
        number.map_err(|_| format!("a long of {} bytes", bytes.len()))
    }
}

impl Writable for () {
    const CLASS: &'static str = "org.apache.hadoop.io.NullWritable";
    type Of<'a> = ();

    fn decode(bytes: &[u8]) -> Result<(), String> {
        if bytes.is_empty() {
            Ok(())
        } else {
            Err(format!("an empty value of {} bytes", bytes.len()))
        }
    }
}
