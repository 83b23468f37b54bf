//! Fixed-length records.

use std::path::Path;

use napreduce_connectors::compression::Compression;
use napreduce_protocol::Split;
use napreduce_task::ReadPosition;

use super::check;
use super::error::InputError;
use super::format::{InputFormat, RecordReader, Splitting};
use super::source::Source;
use super::window::Window;

/// Records of `length` bytes each, one after another, as `&[u8]`.
///
/// A file that ends within a record is an error. Files ending in `.gz` and `.zst` are decompressed.
///
/// ```
/// use napreduce::Job;
/// use napreduce::input::FixedRecords;
/// use napreduce::testing::JobTest;
///
/// let job = || Job::input(FixedRecords { length: 3 }).map_only(|record: &[u8], out| out.emit(record, ()));
/// assert_eq!(JobTest::new(job).input("onetwo").run().text(), "one\ntwo\n");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FixedRecords {
    /// Bytes in a record, at least 1.
    pub length: usize,
}

/// Reads [`FixedRecords`].
pub struct FixedReader {
    source: Source,
    window: Window,
    length: usize,
    /// Records that begin here or later belong to the next split.
    end: u64,
    /// Length of the records of the last batch.
    block: usize,
    /// Where the current record begins.
    record: ReadPosition,
}

impl InputFormat for FixedRecords {
    type Record<'a> = &'a [u8];
    type Reader = FixedReader;

    fn splitting(&self, path: &Path) -> Splitting {
        Compression::of(path).map_or(Splitting::Multiples(self.length), Splitting::Compressed)
    }

    /// Fixed-length records may begin with any bytes, so only names are checked, and that the file is not one of typed
    /// records.
    fn check(&self, path: &Path) -> Result<(), InputError> {
        check::check_name(path)?;
        check::check_typed_records(path)
    }

    fn open_at(
        &self,
        split: &Split,
        offset: u64,
        memory: usize,
    ) -> Result<FixedReader, InputError> {
        let length = self.length;
        if length == 0 {
            return Err(InputError::NoRecordLength);
        }
        if length > memory {
            return Err(InputError::RecordTooLong {
                length,
                limit: memory as u64,
            });
        }
        let first = offset.next_multiple_of(length as u64);
        let source = Source::open(split, first, memory)?;
        let compressed = source.is_compressed();
        let expected = (!compressed).then(|| split.file_length.saturating_sub(first));
        Ok(FixedReader {
            record: source.position_at(first),
            source,
            window: Window::new(first, expected, length, memory),
            length,
            end: if compressed { u64::MAX } else { split.end() },
            block: 0,
        })
    }
}

impl FixedReader {
    /// Advances to the next block of records; `false` at the end of the split.
    fn advance(&mut self) -> Result<bool, InputError> {
        self.window.take(std::mem::take(&mut self.block));
        loop {
            let offset = self.window.offset();
            if offset >= self.end {
                return Ok(false);
            }
            let length = self.length as u64;
            let available = self.window.available().len();
            let wanted =
                usize::try_from((self.end - offset).div_ceil(length)).unwrap_or(usize::MAX);
            let records = (available / self.length).min(wanted);
            if records > 0 {
                self.block = records * self.length;
                if let Some(position) = self.source.compressed_position() {
                    let block = offset..offset + self.block as u64;
                    self.record.enter(block, self.record.bytes_end()..position);
                }
                return Ok(true);
            }
            if self.window.ended() {
                return if available == 0 {
                    Ok(false)
                } else {
                    Err(self.partial(offset + available as u64))
                };
            }
            // There is room: the remainder is shorter than a record.
            self.window.fill(&mut self.source, self.end)?;
        }
    }

    #[cold]
    fn partial(&self, size: u64) -> InputError {
        InputError::PartialRecord {
            path: self.source.path().to_owned(),
            size,
            length: self.length,
        }
    }
}

impl RecordReader<FixedRecords> for FixedReader {
    fn read_batch<E: From<InputError>>(
        &mut self,
        each: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<bool, E> {
        if !self.advance()? {
            return Ok(false);
        }
        let mut at = self.record.get();
        for record in self.window.available()[..self.block].chunks_exact(self.length) {
            each(record)?;
            at += self.length as u64;
            self.record.set(at);
        }
        Ok(true)
    }

    fn offset(&self) -> u64 {
        self.record.get()
    }

    fn consumed(&self) -> u64 {
        self.source.consumed(self.record.get())
    }

    fn position(&self) -> Option<ReadPosition> {
        Some(self.record.clone())
    }

    fn byte_position(&self) -> Option<ReadPosition> {
        self.position()
    }
}
