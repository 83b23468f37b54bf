//! Lines as records, as text and as bytes.
//!
//! Owns the two line formats and the check that text is UTF-8. Does not own where lines begin and end.

use std::path::Path;

use super::compression::lines_splitting;
use super::lines::{LineBlocks, for_each_line, place_in_blocks};
use super::{InputError, InputFormat, RecordReader, Split, Splitting};

/// Lines of UTF-8 text, as `&str`.
///
/// A line ends at `\n`; one `\r` before that is removed too. The last line needs no newline. A line may be as
/// long as the task's memory. Files ending in `.gz` and `.zst` are decompressed.
///
/// ```
/// use napreduce::Job;
/// use napreduce::input::TextLines;
/// use napreduce::testing::JobTest;
///
/// let job = || Job::input(TextLines).map_only(|line: &str, out| out.emit(line.len(), line));
/// assert_eq!(JobTest::new(job).input("to be\r\nor not").run().text(), "5\tto be\n6\tor not\n");
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct TextLines;

/// Lines of any bytes, as `&[u8]`; otherwise as [`TextLines`].
///
/// ```
/// use napreduce::Job;
/// use napreduce::input::ByteLines;
/// use napreduce::testing::JobTest;
///
/// let job = || Job::input(ByteLines).map_only(|line: &[u8], out| out.emit(line.len(), ()));
/// assert_eq!(JobTest::new(job).input(b"\xff\nor not").run().text(), "1\n6\n");
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ByteLines;

/// Reads [`TextLines`].
///
/// ```
/// use napreduce::input::{InputError, InputFormat, RecordReader, Split, TextLineReader, TextLines};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("input");
/// # std::fs::write(&path, b"one\ntwo")?;
/// let mut reader: TextLineReader = TextLines.open(&Split::whole(&path, 7), 1 << 20)?;
/// let mut read = Vec::new();
/// while reader.read_batch(&mut |record: &str| -> Result<(), InputError> {
///     read.push(record.to_owned());
///     Ok(())
/// })? {}
/// assert_eq!(read, ["one", "two"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TextLineReader {
    blocks: LineBlocks,
}

/// Reads [`ByteLines`].
///
/// ```
/// use napreduce::input::{ByteLineReader, ByteLines, InputError, InputFormat, RecordReader, Split};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("input");
/// # std::fs::write(&path, b"one\n\xff")?;
/// let mut reader: ByteLineReader = ByteLines.open(&Split::whole(&path, 5), 1 << 20)?;
/// let mut read = Vec::new();
/// while reader.read_batch(&mut |record: &[u8]| -> Result<(), InputError> {
///     read.push(record.to_vec());
///     Ok(())
/// })? {}
/// assert_eq!(read, [b"one".to_vec(), b"\xff".to_vec()]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ByteLineReader {
    blocks: LineBlocks,
}

impl InputFormat for TextLines {
    type Record<'a> = &'a str;
    type Reader = TextLineReader;

    fn splitting(&self, path: &Path) -> Splitting {
        lines_splitting(path)
    }

    fn open_at(&self, split: &Split, offset: u64, memory: usize) -> Result<TextLineReader, InputError> {
        Ok(TextLineReader { blocks: LineBlocks::open(split, offset, memory)? })
    }
}

impl InputFormat for ByteLines {
    type Record<'a> = &'a [u8];
    type Reader = ByteLineReader;

    fn splitting(&self, path: &Path) -> Splitting {
        lines_splitting(path)
    }

    fn open_at(&self, split: &Split, offset: u64, memory: usize) -> Result<ByteLineReader, InputError> {
        Ok(ByteLineReader { blocks: LineBlocks::open(split, offset, memory)? })
    }
}

impl RecordReader<TextLines> for TextLineReader {
    fn read_batch<E: From<InputError>>(
        &mut self,
        each: &mut impl FnMut(&str) -> Result<(), E>,
    ) -> Result<bool, E> {
        if !self.blocks.advance()? {
            return Ok(false);
        }
        let (block, base, line) = self.blocks.block();
        match std::str::from_utf8(block) {
            Ok(text) => {
                for_each_line(block, base, line, |range| each(&text[range]))?;
                Ok(true)
            }
            Err(error) => Err(self.blocks.not_text(error.valid_up_to()).into()),
        }
    }

    place_in_blocks!();
}

impl RecordReader<ByteLines> for ByteLineReader {
    fn read_batch<E: From<InputError>>(
        &mut self,
        each: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<bool, E> {
        if !self.blocks.advance()? {
            return Ok(false);
        }
        let (block, base, line) = self.blocks.block();
        for_each_line(block, base, line, |range| each(&block[range]))?;
        Ok(true)
    }

    place_in_blocks!();
}
