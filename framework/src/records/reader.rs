//! The input format of typed records. It finds the blocks of a split and verifies each before use.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use napreduce_task::{ReadPosition, progress};

use super::block::{BLOCK_HEADER_BYTES, BlockHeader, Families, HEAD_BYTES, Head, take_field};
use crate::codec::{DecodeError, Key, Scratch, Value};
use crate::input::{
    InputError, InputFormat, RecordReader, Split, Splitting, open_input, open_path,
};
use napreduce_connectors::bytes::SharedBytes;

/// Files that a job wrote with [`Records`](crate::records::Records); made by
/// [`Job::records`](crate::Job::records).
///
/// ```
/// use napreduce::Job;
/// use napreduce::records::TypedRecords;
///
/// let read = Job::input(TypedRecords::<String, u64>::default()).map_only(|(word, count), out| out.emit(word, count));
/// # let _ = read;
/// ```
pub struct TypedRecords<K, V> {
    types: PhantomData<fn() -> (K, V)>,
}

impl<K, V> Default for TypedRecords<K, V> {
    fn default() -> Self {
        TypedRecords { types: PhantomData }
    }
}

/// Reads [`TypedRecords`], one block at a time.
///
/// ```
/// use napreduce::input::{InputError, InputFormat, RecordReader, Split};
/// use napreduce::records::{RecordsReader, TypedRecords};
///
/// /// Reads all records of a file, outside of a job.
/// fn all(path: &std::path::Path, length: u64) -> Result<Vec<(String, u64)>, InputError> {
///     let format = TypedRecords::<String, u64>::default();
///     let mut reader: RecordsReader<String, u64> = format.open(&Split::whole(path, length), 1 << 20)?;
///     let mut all = Vec::new();
///     while reader.read_batch(&mut |(word, count): (&str, u64)| -> Result<(), InputError> {
///         all.push((word.to_owned(), count));
///         Ok(())
///     })? {}
///     Ok(all)
/// }
/// # let _ = all;
/// ```
pub struct RecordsReader<K, V> {
    file: SharedBytes,
    path: PathBuf,
    file_length: u64,
    split_offset: u64,
    /// Blocks that begin here or later belong to the next split.
    end: u64,
    /// Offset of the next block.
    position: u64,
    /// Records of that block before the current one.
    before: ReadPosition,
    memory: u64,
    body: Vec<u8>,
    scratch: Scratch,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K: Key, V: Value> InputFormat for TypedRecords<K, V> {
    type Record<'a> = (K::Ref<'a>, V::Ref<'a>);
    type Reader = RecordsReader<K, V>;

    fn splitting(&self, _: &Path) -> Splitting {
        Splitting::Anywhere
    }

    /// Rejects files with records of other types.
    fn check(&self, path: &Path) -> Result<(), InputError> {
        let unreadable = |error| InputError::unreadable(path, error);
        let file = open_path(path).map_err(unreadable)?;
        let file_length = file.length().map_err(unreadable)?;
        if file_length == 0 {
            return Ok(());
        }
        read_head(&file, path, file_length, &Families::of::<K, V>()).map(drop)
    }

    fn open_at(
        &self,
        split: &Split,
        offset: u64,
        memory: usize,
    ) -> Result<RecordsReader<K, V>, InputError> {
        let unreadable = |error| InputError::unreadable(&split.path, error);
        let mut reader = RecordsReader {
            file: open_input(split, memory, false).map_err(unreadable)?,
            path: split.path.clone(),
            file_length: split.file_length,
            split_offset: split.offset,
            end: split.end(),
            position: 0,
            before: ReadPosition::default(),
            memory: memory as u64,
            body: Vec::new(),
            scratch: Scratch::new(),
            types: PhantomData,
        };
        let families = Families::of::<K, V>();
        reader.position = read_head(&reader.file, &split.path, split.file_length, &families)?;
        while reader.position < offset.min(reader.file_length) {
            let block = reader.block_header()?;
            reader.position += BLOCK_HEADER_BYTES as u64 + u64::from(block.length);
            progress();
        }
        Ok(reader)
    }
}

/// Reads the head of a file and returns its length.
fn read_head(
    file: &SharedBytes,
    path: &Path,
    file_length: u64,
    expected: &Families,
) -> Result<u64, InputError> {
    let bad = |reason| InputError::BadRecords {
        path: path.to_owned(),
        offset: 0,
        reason,
    };
    let mut fixed = [0; HEAD_BYTES];
    read_within(file, path, file_length, &mut fixed, 0)?;
    let head = Head::decode(&fixed).map_err(bad)?;
    let mut names = vec![0; head.names_bytes()];
    read_within(file, path, file_length, &mut names, HEAD_BYTES as u64)?;
    let found = head.families(&names).map_err(bad)?;
    if found != *expected {
        let found = found.to_string();
        let expected = expected.to_string();
        return Err(InputError::OtherRecords {
            path: path.to_owned(),
            found,
            expected,
        });
    }
    Ok((HEAD_BYTES + names.len()) as u64)
}

fn read_within(
    file: &SharedBytes,
    path: &Path,
    file_length: u64,
    into: &mut [u8],
    at: u64,
) -> Result<(), InputError> {
    if at + into.len() as u64 > file_length {
        let reason = "the file ends inside a block".to_owned();
        return Err(InputError::BadRecords {
            path: path.to_owned(),
            offset: at,
            reason,
        });
    }
    let read = file.read_exact_at(into, at);
    read.map_err(|error| InputError::of_read(path, file_length, at, error))
}

impl<K: Key, V: Value> RecordsReader<K, V> {
    fn read_at(&self, into: &mut [u8], at: u64) -> Result<(), InputError> {
        read_within(&self.file, &self.path, self.file_length, into, at)
    }

    #[cold]
    fn bad(&self, offset: u64, reason: String) -> InputError {
        InputError::BadRecords {
            path: self.path.clone(),
            offset,
            reason,
        }
    }

    fn block_header(&self) -> Result<BlockHeader, InputError> {
        let mut bytes = [0; BLOCK_HEADER_BYTES];
        self.read_at(&mut bytes, self.position)?;
        let header = BlockHeader::decode(&bytes);
        let end = self.position + BLOCK_HEADER_BYTES as u64 + u64::from(header.length);
        if end > self.file_length {
            return Err(self.bad(
                self.position,
                "a block is longer than the rest of the file".into(),
            ));
        }
        Ok(header)
    }

    /// Reads further into the body of the block at `position`, of which `read` bytes were read. Keeps the
    /// last `kept` of those and fills the memory. Fails if there is no room: a record is too long.
    fn read_on(
        &mut self,
        header: BlockHeader,
        read: usize,
        kept: usize,
    ) -> Result<usize, InputError> {
        let room = usize::try_from(self.memory)
            .unwrap_or(usize::MAX)
            .saturating_sub(kept);
        let more = (header.length as usize - read).min(room);
        if more == 0 {
            let path = self.path.clone();
            let offset = self.position;
            return Err(InputError::BlockRecordTooLong {
                path,
                offset,
                limit: self.memory,
            });
        }
        let mut body = std::mem::take(&mut self.body);
        let filled = body.len();
        body.copy_within(filled - kept.min(filled).., 0);
        body.resize(kept + more, 0);
        self.read_at(
            &mut body[kept..],
            self.position + BLOCK_HEADER_BYTES as u64 + read as u64,
        )?;
        self.body = body;
        Ok(read + more)
    }

    /// Verifies the whole block at `position` and returns the length of the part in the body: all of it if it
    /// fits into the memory.
    fn check(&mut self, header: BlockHeader) -> Result<usize, InputError> {
        self.body.clear();
        let mut checksum = header.checksum_start();
        let mut read = 0;
        while read < header.length as usize {
            let before = read;
            read = self.read_on(header, read, 0)?;
            checksum = crc32c::crc32c_append(checksum, &self.body[..read - before]);
        }
        if checksum != header.crc {
            return Err(self.bad(self.position, "a block does not match its checksum".into()));
        }
        let fits = u64::from(header.length) <= self.memory;
        if !fits {
            self.body.clear();
        }
        Ok(if fits { read } else { 0 })
    }

    fn undecodable(&self, what: &str, error: &DecodeError) -> InputError {
        self.bad(
            self.position,
            format!("a {what} does not match the job's type: {error}"),
        )
    }
}

impl<K: Key, V: Value> RecordReader<TypedRecords<K, V>> for RecordsReader<K, V> {
    fn read_batch<E: From<InputError>>(
        &mut self,
        each: &mut impl FnMut(<TypedRecords<K, V> as InputFormat>::Record<'_>) -> Result<(), E>,
    ) -> Result<bool, E> {
        if self.position >= self.end.min(self.file_length) {
            return Ok(false);
        }
        let header = self.block_header()?;
        let mut read = self.check(header)?;
        let end = self.position + BLOCK_HEADER_BYTES as u64 + u64::from(header.length);
        let [start, stop] =
            [self.position, end].map(|at| at.min(self.end).saturating_sub(self.split_offset));
        let records = u64::from(header.records);
        self.before.enter(0..records, start..stop);
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut number = 0;
        let left = loop {
            let mut rest = self.body.as_slice();
            while number < records {
                let mut record = rest;
                let (Some(key), Some(value)) = (take_field(&mut record), take_field(&mut record))
                else {
                    break;
                };
                self.before.set(number);
                scratch.reset();
                let key = K::decode_whole(key, &scratch)
                    .map_err(|error| self.undecodable("key", &error))?;
                let value = V::decode_whole(value, &scratch)
                    .map_err(|error| self.undecodable("value", &error))?;
                each((key, value))?;
                rest = record;
                number += 1;
            }
            if number == records || read == header.length as usize {
                break rest.len() + header.length as usize - read;
            }
            // A block larger than the memory was verified before and is read again in pieces.
            read = self.read_on(header, read, rest.len())?;
        };
        if number < records {
            return Err(self
                .bad(
                    self.position,
                    "a block has fewer records than its header claims".into(),
                )
                .into());
        }
        if left > 0 {
            return Err(self
                .bad(
                    self.position,
                    "a block has bytes after its last record".into(),
                )
                .into());
        }
        self.scratch = scratch;
        self.position = end;
        self.before.enter(0..0, stop..stop);
        Ok(true)
    }

    fn offset(&self) -> u64 {
        self.position
    }

    fn records_before(&self) -> u64 {
        self.before.get()
    }

    fn consumed(&self) -> u64 {
        self.position
            .min(self.end)
            .saturating_sub(self.split_offset)
    }

    fn position(&self) -> Option<ReadPosition> {
        Some(self.before.clone())
    }
}
