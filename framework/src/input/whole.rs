//! Whole files as records.

use std::path::{Path, PathBuf};

use napreduce_protocol::Split;

use super::error::InputError;
use super::format::{InputFormat, RecordReader, Splitting};
use super::source::Source;

/// Minimum growth of the buffer for a decompressed file.
const GROWTH_BYTES: usize = 64 << 10;

/// One record per file, as a [`WholeFile`]; also for an empty file.
///
/// A file may be as long as the task's memory. Files ending in `.gz` and `.zst` are decompressed; all others,
/// including archives, are read as stored.
///
/// ```
/// use napreduce::Job;
/// use napreduce::input::WholeFiles;
/// use napreduce::testing::JobTest;
///
/// let job = || Job::input(WholeFiles).map_only(|file, out| out.emit(file.bytes.len(), ()));
/// assert_eq!(JobTest::new(job).input("one\ntwo").run().text(), "7\n");
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct WholeFiles;

/// A file as a record.
///
/// ```
/// use napreduce::Job;
/// use napreduce::input::WholeFile;
///
/// let names = Job::whole_files().map_only(|WholeFile { path, bytes }, out| out.emit(path.display().to_string(), bytes.len()));
/// # let _ = names;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WholeFile<'a> {
    /// Its path, beginning as the INPUT argument did.
    pub path: &'a Path,
    /// All its bytes, decompressed.
    pub bytes: &'a [u8],
}

/// Reads [`WholeFiles`].
pub struct WholeFileReader {
    path: PathBuf,
    source: Source,
    /// Stored length of the file.
    stored: u64,
    expected: usize,
    memory: usize,
    bytes: Vec<u8>,
    /// Whether the file was returned.
    done: bool,
}

impl InputFormat for WholeFiles {
    type Record<'a> = WholeFile<'a>;
    type Reader = WholeFileReader;

    fn splitting(&self, _: &Path) -> Splitting {
        Splitting::Whole
    }

    /// Archives are allowed as whole files.
    fn check(&self, _: &Path) -> Result<(), InputError> {
        Ok(())
    }

    fn open_at(
        &self,
        split: &Split,
        offset: u64,
        memory: usize,
    ) -> Result<WholeFileReader, InputError> {
        // A finished file is not read again; its length is known.
        let source = Source::open(split, 0, memory)?;
        let expected = if source.is_compressed() {
            GROWTH_BYTES.min(memory)
        } else {
            clamped(split.file_length)
        };
        if expected > memory {
            return Err(too_long(&split.path, memory));
        }
        Ok(WholeFileReader {
            path: split.path.clone(),
            source,
            stored: split.file_length,
            expected,
            memory,
            bytes: Vec::new(),
            done: offset > 0,
        })
    }
}

fn clamped(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cold]
fn too_long(path: &Path, memory: usize) -> InputError {
    InputError::FileTooLong {
        path: path.to_owned(),
        limit: memory as u64,
    }
}

impl WholeFileReader {
    fn read_all(&mut self) -> Result<(), InputError> {
        // One extra byte of room, to detect the end and files beyond the limit.
        let mut filled = 0;
        self.bytes.resize(self.expected + 1, 0);
        loop {
            let read = self.source.read(&mut self.bytes[filled..])?;
            if read == 0 {
                self.bytes.truncate(filled);
                return Ok(());
            }
            filled += read;
            if filled > self.memory {
                return Err(too_long(&self.path, self.memory));
            }
            if filled == self.bytes.len() {
                self.bytes
                    .resize(filled.saturating_mul(2).min(self.memory + 1), 0);
            }
        }
    }
}

impl RecordReader<WholeFiles> for WholeFileReader {
    fn read_batch<E: From<InputError>>(
        &mut self,
        each: &mut impl FnMut(WholeFile<'_>) -> Result<(), E>,
    ) -> Result<bool, E> {
        if self.done {
            return Ok(false);
        }
        self.read_all()?;
        each(WholeFile {
            path: &self.path,
            bytes: &self.bytes,
        })?;
        self.done = true;
        Ok(true)
    }

    /// Any offset other than 0 means that the file is done, even if it is empty.
    fn offset(&self) -> u64 {
        if self.done {
            (self.bytes.len() as u64).max(1)
        } else {
            0
        }
    }

    fn consumed(&self) -> u64 {
        if self.done {
            return self.stored;
        }
        self.source
            .compressed_position()
            .unwrap_or(self.bytes.len() as u64)
    }
}
