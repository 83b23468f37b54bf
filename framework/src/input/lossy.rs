//! Lines as text, whatever their bytes are.
//!
//! Owns what becomes of bytes that are no text. Does not own where lines begin and end.

use std::path::Path;

use super::compression::lines_splitting;
use super::lines::{LineBlocks, for_each_line, place_in_blocks};
use super::{InputError, InputFormat, RecordReader, Split, Splitting};

/// Lines of text, as `&str`: what is no UTF-8 becomes U+FFFD, one for each sequence of bytes that cannot
/// begin or go on as a letter. Otherwise as [`TextLines`](super::TextLines), and as fast where all is UTF-8.
///
/// ```
/// use napreduce::Job;
/// use napreduce::input::LossyLines;
/// use napreduce::testing::JobTest;
///
/// let job = || Job::input(LossyLines).map_only(|line: &str, out| out.emit(line.chars().count(), ()));
/// assert_eq!(JobTest::new(job).input(b"a\xffb\nth\xc3\xa9\n").run().text(), "3\n3\n");
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct LossyLines;

/// Reads [`LossyLines`].
///
/// ```
/// use napreduce::input::{InputError, InputFormat, LossyLineReader, LossyLines, RecordReader, Split};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("input");
/// # std::fs::write(&path, b"one\n\xff")?;
/// let mut reader: LossyLineReader = LossyLines.open(&Split::whole(&path, 5), 1 << 20)?;
/// let mut read = Vec::new();
/// while reader.read_batch(&mut |record: &str| -> Result<(), InputError> {
///     read.push(record.to_owned());
///     Ok(())
/// })? {}
/// assert_eq!(read, ["one", "\u{fffd}"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct LossyLineReader {
    blocks: LineBlocks,
}

impl InputFormat for LossyLines {
    type Record<'a> = &'a str;
    type Reader = LossyLineReader;

    fn splitting(&self, path: &Path) -> Splitting {
        lines_splitting(path)
    }

    fn open_at(&self, split: &Split, offset: u64, memory: usize) -> Result<LossyLineReader, InputError> {
        Ok(LossyLineReader { blocks: LineBlocks::open(split, offset, memory)? })
    }
}

impl RecordReader<LossyLines> for LossyLineReader {
    fn read_batch<E: From<InputError>>(
        &mut self,
        each: &mut impl FnMut(&str) -> Result<(), E>,
    ) -> Result<bool, E> {
        if !self.blocks.advance()? {
            return Ok(false);
        }
        let (block, base, line) = self.blocks.block();
        match std::str::from_utf8(block) {
            Ok(text) => for_each_line(block, base, line, |range| each(&text[range]))?,
            Err(_) => {
                for_each_line(block, base, line, |range| each(&String::from_utf8_lossy(&block[range])))?
            }
        }
        Ok(true)
    }

    place_in_blocks!();
}
