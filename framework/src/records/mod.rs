//! Typed records on disk, passed from one job to a later one of the same or another program. A chain of jobs
//! thus needs no text in between.
//!
//! ```text
//! file    magic "NAPRECS\n", version u32, crc32c u32 of the names, their lengths u32, names of key and value type
//! block   length u32, crc32c u32 of length, records and body, records u32, body
//! record  key length, key, value length, value        lengths in LEB128
//! ```
//! Integers are little-endian. A file is read only as the types that it names. A reader finds the first block of its split by stepping from block to block.
//!
//! ```
//! use napreduce::Job;
//! use napreduce::records::Records;
//!
//! let write = Job::text().map_only_to(Records::<String, u64>::default(), |line: &str, out| out.emit(line, 1));
//! let read = Job::records::<String, u64>().map_only(|(line, count), out| out.emit(line, count));
//! # let _ = (write, read);
//! ```

mod block;
mod pairs;
mod reader;

use std::marker::PhantomData;

use napreduce_protocol::TaskError;

use crate::codec::{Key, Value};
use crate::output::{Output, OutputFormat};
use crate::state::Save;
use crate::state::derive_support::{read_shape, write_shape};
use block::{BlockWriter, Families};
pub use pairs::{PairOutput, Pairs, WritePair};
pub use reader::{RecordsReader, TypedRecords};

/// An output format of typed records, read by a later job with [`Job::records`](crate::Job::records).
///
/// ```
/// use napreduce::records::Records;
/// use napreduce::{Emit, Job};
///
/// let count = Job::text()
///     .map(|line: &str, out: &mut Emit<String, u64>| out.emit(line, 1))
///     .output(Records::<String, u64>::default())
///     .reduce(|line, counts, out| out.emit(line, counts.sum()));
///
/// let frequent = Job::records::<String, u64>().map_only(|(line, count), out| {
///     if count > 1 {
///         out.emit(line, count);
///     }
/// });
/// # let _ = (count, frequent);
/// ```
pub struct Records<K, V> {
    block: BlockWriter,
    types: PhantomData<fn(K, V)>,
}

impl<K, V> Default for Records<K, V> {
    fn default() -> Self {
        Records {
            block: BlockWriter::default(),
            types: PhantomData,
        }
    }
}

/// A clone has no unfinished block.
impl<K, V> Clone for Records<K, V> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<K: Key, V: Value> OutputFormat for Records<K, V> {
    type Item = (K, V);

    fn begin(&mut self, out: &mut Vec<u8>) {
        Families::of::<K, V>().write_head(out);
    }

    fn save(&self, state: &mut Vec<u8>) -> Result<Save, TaskError> {
        write_shape(&Families::of::<K, V>().to_string(), state);
        self.block.save(state);
        Ok(Save::Saved)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
        let block = read_shape(&Families::of::<K, V>().to_string(), state)?;
        self.block.restore(block).map_err(TaskError::task)
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.block.finish(out);
    }
}

impl<K: Key, V: Value> Records<K, V> {
    /// Adds one record; `encode` appends the encoded value.
    #[inline]
    pub(crate) fn add(
        &mut self,
        key: K::Ref<'_>,
        encode: impl FnOnce(&mut Vec<u8>),
        out: &mut Vec<u8>,
    ) {
        self.block.add::<K>(key, encode, out);
    }
}

impl<K: Key, V: Value> Output<Records<K, V>> {
    /// Writes one record.
    #[inline]
    pub fn emit(&mut self, key: K::Ref<'_>, value: V::Ref<'_>) {
        self.record(|format, out| format.add(key, |out| V::encode(value, true, out), out));
    }
}

/// Returns the bytes of a file with these pairs.
pub(crate) fn write_records<K: Key, V: Value>(
    pairs: impl IntoIterator<Item = (K::Owned, V::Owned)>,
) -> Vec<u8> {
    let mut out = Vec::new();
    Families::of::<K, V>().write_head(&mut out);
    let mut block = BlockWriter::default();
    for (key, value) in pairs {
        block.add_owned::<K, V>(&key, &value, &mut out);
    }
    block.finish(&mut out);
    out
}
