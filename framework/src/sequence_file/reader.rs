//! Reading the records of a SequenceFile.
//!
//! Owns markers, which records belong to a split, and positions, which count records: the offset of a split
//! and the records of it that are done. Does not own headers nor types.

use std::cell::RefCell;
use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use memchr::memmem::Finder;
use napreduce_live::{ByteSize, ReadPosition, progress};

use super::header::{Header, Layout, MAGIC, MARKER_BYTES, take_number};
use super::{SequenceFiles, Writable};
use crate::input::{InputBytes, InputError, PositionedRead, RecordReader, Split, open_input, open_path};

const SEARCH_BYTES: usize = 64 << 10;
/// Records of a batch that are not in a block.
const BATCH_RECORDS: u64 = 1024;
const LENGTH_BYTES: usize = 4;
/// What stands where a length belongs, before a marker.
const ESCAPE: [u8; LENGTH_BYTES] = [0xff; LENGTH_BYTES];
const TOO_SHORT: &str = "it ends too early; the file is incomplete";

type Pair<'a, K, V> = (<K as Writable>::Of<'a>, <V as Writable>::Of<'a>);

/// Reads [`SequenceFiles`].
///
/// ```
/// use napreduce::input::{InputError, InputFormat, RecordReader, Split};
/// use napreduce::sequence_file::{SequenceFiles, SequenceReader};
///
/// /// All records of a file, for a look at it outside of a job.
/// fn all(path: &std::path::Path, length: u64) -> Result<Vec<(String, i32)>, InputError> {
///     let format = SequenceFiles::<String, i32>::default();
///     let mut reader: SequenceReader<String, i32> = format.open(&Split::whole(path, length), 1 << 20)?;
///     let mut all = Vec::new();
///     while reader.read_batch(&mut |(word, count): (&str, i32)| -> Result<(), InputError> {
///         all.push((word.to_owned(), count));
///         Ok(())
///     })? {}
///     Ok(all)
/// }
/// # let _ = all;
/// ```
pub struct SequenceReader<K, V> {
    file: Container,
    layout: Layout,
    split: Split,
    /// Where the next record, or the escape before a marker, begins.
    next: u64,
    ended: bool,
    /// Whether a block begins there, whose marker was passed.
    begun: bool,
    /// Records that are still to be passed over.
    skipped: u64,
    position: ReadPosition,
    types: PhantomData<fn() -> (K, V)>,
}

/// The file, without what its records mean.
struct Container {
    file: InputBytes,
    path: PathBuf,
    length: u64,
    memory: usize,
    marker: [u8; MARKER_BYTES],
    /// Where the bytes that were read last begin, and they.
    held: RefCell<(u64, Vec<u8>)>,
}

/// Refuses what does not begin as such a file.
pub(super) fn check(path: &Path) -> Result<(), InputError> {
    let file = open_path(path).map_err(|error| InputError::unreadable(path, error))?;
    check_beginning(path, &*file)
}

fn check_beginning(path: &Path, file: &dyn PositionedRead) -> Result<(), InputError> {
    let unreadable = |error| InputError::unreadable(path, error);
    let bad =
        |reason: &str| InputError::BadTable { path: path.to_owned(), offset: 0, reason: reason.to_owned() };
    let mut first = [0; MAGIC.len()];
    match file.read_exact_at(&mut first, 0) {
        Ok(()) if first == *MAGIC => Ok(()),
        Ok(()) if first.starts_with(b"SEQ") => {
            Err(bad(&format!("it is a SequenceFile of version {}, this program reads version 6", first[3])))
        }
        Err(_) if file.length().map_err(unreadable)? == 0 => Ok(()),
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => Err(unreadable(error)),
        _ => Err(bad("it does not begin as a SequenceFile")),
    }
}

impl Container {
    /// As many bytes as are there, at most `wanted`.
    fn peek(&self, at: u64, wanted: usize) -> Result<Vec<u8>, InputError> {
        let there = usize::try_from(self.length.saturating_sub(at)).unwrap_or(usize::MAX);
        let mut held = self.held.borrow_mut();
        let (begin, bytes) = &mut *held;
        let from = usize::try_from(at.wrapping_sub(*begin)).unwrap_or(usize::MAX);
        if let Some(found) = bytes.get(from..from.saturating_add(wanted.min(there))) {
            return Ok(found.to_vec());
        }
        *begin = at;
        bytes.clear();
        bytes.resize(there.min(wanted.max(SEARCH_BYTES)), 0);
        let read = self.file.read_exact_at(bytes, at);
        read.map_err(|error| InputError::of_read(&self.path, self.length, at, error))?;
        progress();
        Ok(bytes[..there.min(wanted)].to_vec())
    }

    /// So many bytes, which must be there and fit the memory.
    fn read(&self, at: u64, wanted: u64) -> Result<Vec<u8>, InputError> {
        if at.saturating_add(wanted) > self.length {
            return Err(self.bad(self.length, TOO_SHORT));
        }
        match usize::try_from(wanted) {
            Ok(bytes) if bytes <= self.memory => self.peek(at, bytes),
            _ => {
                let limit = ByteSize::new(self.memory as u64);
                Err(self.bad(
                    at,
                    format!(
                        "a record or a block of {wanted} bytes is larger than {limit}; raise --task-memory"
                    ),
                ))
            }
        }
    }

    #[cold]
    fn bad(&self, offset: u64, reason: impl Into<String>) -> InputError {
        InputError::BadTable { path: self.path.clone(), offset, reason: reason.into() }
    }

    fn header(&self) -> Result<Header, InputError> {
        let mut wanted = SEARCH_BYTES;
        loop {
            let bytes = self.peek(0, wanted)?;
            match Header::parse(&bytes) {
                Some(header) => return header.map_err(|reason| self.bad(0, reason)),
                None if bytes.len() as u64 == self.length => return Err(self.bad(self.length, TOO_SHORT)),
                None if wanted >= self.memory => {
                    return Err(self.bad(0, "its header is longer than the memory; raise --task-memory"));
                }
                None => wanted = wanted.saturating_mul(4).min(self.memory),
            }
        }
    }

    /// The first marker that begins at `from` or later and before `until`.
    fn find_marker(&self, from: u64, until: u64) -> Result<Option<u64>, InputError> {
        let finder = Finder::new(&self.marker);
        let mut at = from;
        while at < until {
            let bytes = self.peek(at, SEARCH_BYTES + MARKER_BYTES - 1)?;
            if let Some(found) = finder.find(&bytes) {
                return Ok(Some(at + found as u64).filter(|found| *found < until));
            }
            at += SEARCH_BYTES as u64;
        }
        Ok(None)
    }

    /// A number and the bytes that it counts, at `at`, which is moved behind them.
    fn counted(&self, at: &mut u64) -> Result<Vec<u8>, InputError> {
        let count = self.number(at)?;
        let count =
            u64::try_from(count).map_err(|_| self.bad(*at, format!("it is damaged: {count} bytes")))?;
        let bytes = self.read(*at, count)?;
        *at += count;
        Ok(bytes)
    }

    fn number(&self, at: &mut u64) -> Result<i64, InputError> {
        let bytes = self.peek(*at, 9)?;
        let mut rest = &bytes[..];
        let number = take_number(&mut rest).ok_or_else(|| self.bad(self.length, TOO_SHORT))?;
        *at += (bytes.len() - rest.len()) as u64;
        Ok(number)
    }
}

impl<K: Writable, V: Writable> SequenceReader<K, V> {
    pub(super) fn open(split: &Split, offset: u64, memory: usize) -> Result<Self, InputError> {
        let file = open_input(split, memory, false);
        let file = file.map_err(|error| InputError::unreadable(&split.path, error))?;
        check_beginning(&split.path, &*file)?;
        let (path, length) = (split.path.clone(), split.file_length);
        let mut file =
            Container { file, path, length, memory, marker: [0; MARKER_BYTES], held: RefCell::default() };
        let (mut first, mut begun) = (None, false);
        let mut layout = Layout::Plain;
        if length > 0 {
            let header = file.header()?;
            for (what, found, wanted) in
                [("keys", &header.key, K::CLASS), ("values", &header.value, V::CLASS)]
            {
                if found != wanted {
                    return Err(file.bad(0, format!("its {what} are {found}, and this job reads {wanted}")));
                }
            }
            file.marker = header.marker;
            layout = header.layout;
            let begin = (header.length - MARKER_BYTES) as u64;
            first = file.find_marker(begin.max(split.offset), split.end())?;
            begun = matches!(layout, Layout::Blocks(_)) && first != Some(begin);
        }
        let position = ReadPosition::new(split.offset..split.end(), 0..split.length);
        position.set(offset);
        Ok(SequenceReader {
            file,
            layout,
            next: first.map_or(split.end(), |marker| marker + MARKER_BYTES as u64),
            ended: first.is_none(),
            begun,
            skipped: offset.saturating_sub(split.offset),
            split: split.clone(),
            position,
            types: PhantomData,
        })
    }

    /// Passes over a marker, if there is one; false at the end of the split or of the file.
    fn begin_records(&mut self) -> Result<bool, InputError> {
        if std::mem::take(&mut self.begun) && !self.ended {
            return Ok(true);
        }
        while !self.ended {
            let first = self.file.peek(self.next, LENGTH_BYTES)?;
            if first.is_empty() {
                self.ended = true;
            } else if first == ESCAPE {
                let marker = self.next + LENGTH_BYTES as u64;
                if self.file.read(marker, MARKER_BYTES as u64)? != self.file.marker {
                    return Err(self.file.bad(marker, "it is damaged: no marker stands where one belongs"));
                }
                self.ended = marker >= self.split.end();
                self.next = marker + MARKER_BYTES as u64;
                if matches!(self.layout, Layout::Blocks(_)) && !self.ended {
                    return Ok(true);
                }
            } else if matches!(self.layout, Layout::Blocks(_)) {
                // The first block has a marker of its own behind that of the header.
                return Err(self.file.bad(self.next, "it is damaged: a block begins without a marker"));
            } else {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn decoded<'b, W: Writable>(file: &Container, at: u64, bytes: &'b [u8]) -> Result<W::Of<'b>, InputError> {
        W::decode(bytes).map_err(|reason| file.bad(at, format!("it is damaged: {reason}")))
    }

    /// Reads one record that is not in a block.
    fn record<E: From<InputError>>(
        &mut self,
        each: &mut impl FnMut(Pair<'_, K, V>) -> Result<(), E>,
    ) -> Result<(), E> {
        let at = self.next;
        let lengths = self.file.read(at, 2 * LENGTH_BYTES as u64)?;
        let length =
            |from: usize| lengths[from..].first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
        let (both, key) = (u64::from(length(0)), length(LENGTH_BYTES) as usize);
        let begin = at + 2 * LENGTH_BYTES as u64;
        if key as u64 > both {
            return Err(self
                .file
                .bad(at, format!("it is damaged: a key of {key} bytes in a record of {both}"))
                .into());
        }
        self.next = begin.saturating_add(both);
        if self.next > self.file.length {
            return Err(self.file.bad(self.file.length, TOO_SHORT).into());
        }
        if let Some(left) = self.skipped.checked_sub(1) {
            self.skipped = left;
            return Ok(());
        }
        let bytes = self.file.read(begin, both)?;
        let (key, stored) = bytes.split_at(key);
        let decompressed = match self.layout {
            Layout::Records(codec) => Some(codec.decompress(stored, self.file.memory)),
            _ => None,
        };
        let decompressed = decompressed.transpose().map_err(|reason| self.file.bad(at, reason))?;
        let value = decompressed.as_deref().unwrap_or(stored);
        let key = Self::decoded::<K>(&self.file, at, key)?;
        let value = Self::decoded::<V>(&self.file, at, value)?;
        each((key, value))?;
        self.position.set(self.position.get() + 1);
        Ok(())
    }

    fn block<E: From<InputError>>(
        &mut self,
        each: &mut impl FnMut(Pair<'_, K, V>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Layout::Blocks(codec) = self.layout else { return Ok(()) };
        let at = self.next;
        let count = self.file.number(&mut self.next)?;
        let stored = [(); 4].map(|()| self.file.counted(&mut self.next));
        let mut parts = Vec::with_capacity(stored.len());
        for part in stored {
            let content = codec.decompress(&part?, self.file.memory);
            parts.push(content.map_err(|reason| self.file.bad(at, format!("it is damaged: {reason}")))?);
        }
        let [key_lengths, keys, value_lengths, values] = &parts[..] else { return Ok(()) };
        let (mut keys, mut values) = ((&key_lengths[..], &keys[..]), (&value_lengths[..], &values[..]));
        let damaged =
            || self.file.bad(at, format!("it is damaged: a block of {count} records has not as many"));
        for _ in 0..count {
            let key = take_part(&mut keys).ok_or_else(damaged)?;
            let value = take_part(&mut values).ok_or_else(damaged)?;
            if let Some(left) = self.skipped.checked_sub(1) {
                self.skipped = left;
                continue;
            }
            let (key, value) =
                (Self::decoded::<K>(&self.file, at, key)?, Self::decoded::<V>(&self.file, at, value)?);
            each((key, value))?;
            self.position.set(self.position.get() + 1);
        }
        Ok(())
    }
}

/// Takes a length off the lengths, and so many bytes off the others.
fn take_part<'b>((lengths, bytes): &mut (&[u8], &'b [u8])) -> Option<&'b [u8]> {
    let length = usize::try_from(take_number(lengths)?).ok()?;
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

impl<K: Writable, V: Writable> RecordReader<SequenceFiles<K, V>> for SequenceReader<K, V> {
    fn read_batch<E: From<InputError>>(
        &mut self,
        each: &mut impl FnMut(Pair<'_, K, V>) -> Result<(), E>,
    ) -> Result<bool, E> {
        // Records that are passed over make no batch: a reader opened behind them would begin with the same.
        let begin = self.position.get();
        let wanted = if matches!(self.layout, Layout::Blocks(_)) { 1 } else { BATCH_RECORDS };
        while self.position.get() < begin + wanted {
            if !self.begin_records()? {
                return Ok(false);
            }
            match self.layout {
                Layout::Blocks(_) => self.block(each)?,
                Layout::Plain | Layout::Records(_) => self.record(each)?,
            }
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
            offset => format!("record {number} behind byte {offset}"),
        }
    }

    fn consumed(&self) -> u64 {
        let at = if self.ended { self.split.end() } else { self.next };
        at.clamp(self.split.offset, self.split.end()) - self.split.offset
    }

    fn position(&self) -> Option<ReadPosition> {
        Some(self.position.clone())
    }
}
