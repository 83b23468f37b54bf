//! Lines as records, as text and as bytes.

use std::path::Path;

use napreduce_protocol::Split;
use napreduce_task::ReadPosition;

use super::error::InputError;
use super::format::{InputFormat, RecordReader, Splitting};
use super::lines::{LineBlocks, for_each_line, lines_splitting};

/// Lines of UTF-8 text, as `&str`.
///
/// A line ends at `\n`; one `\r` before that is removed too. The last line needs no newline. A line may be as
/// long as the task's memory. Files ending in `.gz` and `.zst` are decompressed. A UTF-8 byte order mark at
/// the start of a file is not part of its first line; files with a mark of UTF-16 or UTF-32 fail the job. A
/// `\r` elsewhere is part of its line: read files whose lines end in `\r` alone with
/// [`TextRecords::delimited_by("\r")`](crate::input::TextRecords::delimited_by).
///
/// The lines of part files, such as `part-r-00000`, are read as they were written: there, a mark at the start and
/// a `\r` before a newline are part of the line.
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

/// Lines of arbitrary bytes, as `&[u8]`, including any byte order mark; otherwise as [`TextLines`].
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

/// Lines of text, as `&str`. Each invalid UTF-8 sequence becomes U+FFFD. Otherwise as [`TextLines`], and as
/// fast for valid UTF-8.
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

/// Reads [`TextLines`].
pub struct TextLineReader {
    blocks: LineBlocks,
}

/// Reads [`ByteLines`].
pub struct ByteLineReader {
    blocks: LineBlocks,
}

/// Reads [`LossyLines`].
pub struct LossyLineReader {
    blocks: LineBlocks,
}

/// Defines a format of lines and its reader; `each_of` passes on the lines of a block.
macro_rules! line_format {
    ($format:ident, $reader:ident, $line:ty, $each_of:ident) => {
        impl InputFormat for $format {
            type Record<'a> = &'a $line;
            type Reader = $reader;

            fn splitting(&self, path: &Path) -> Splitting {
                lines_splitting(path)
            }

            fn open_at(
                &self,
                split: &Split,
                offset: u64,
                memory: usize,
            ) -> Result<$reader, InputError> {
                Ok($reader {
                    blocks: LineBlocks::open(split, offset, memory)?,
                })
            }
        }

        impl RecordReader<$format> for $reader {
            fn read_batch<E: From<InputError>>(
                &mut self,
                each: &mut impl FnMut(&$line) -> Result<(), E>,
            ) -> Result<bool, E> {
                let is_there = self.blocks.advance()?;
                if is_there {
                    $each_of(&self.blocks, each)?;
                }
                Ok(is_there)
            }

            fn offset(&self) -> u64 {
                self.blocks.offset()
            }

            fn consumed(&self) -> u64 {
                self.blocks.consumed()
            }

            fn position(&self) -> Option<ReadPosition> {
                Some(self.blocks.position())
            }

            fn byte_position(&self) -> Option<ReadPosition> {
                self.position()
            }
        }
    };
}

line_format!(TextLines, TextLineReader, str, text_lines);
line_format!(ByteLines, ByteLineReader, [u8], byte_lines);
line_format!(LossyLines, LossyLineReader, str, lossy_lines);

fn text_lines<E: From<InputError>>(
    blocks: &LineBlocks,
    each: &mut impl FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    let mark = blocks.mark()?;
    let block = blocks.block();
    match std::str::from_utf8(block.bytes) {
        Ok(text) => for_each_line(block, mark, |range| each(&text[range])),
        Err(error) => Err(blocks.not_text(error.valid_up_to()).into()),
    }
}

fn byte_lines<E>(
    blocks: &LineBlocks,
    each: &mut impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let block = blocks.block();
    for_each_line(block, 0, |range| each(&block.bytes[range]))
}

fn lossy_lines<E: From<InputError>>(
    blocks: &LineBlocks,
    each: &mut impl FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    let mark = blocks.mark()?;
    let block = blocks.block();
    match std::str::from_utf8(block.bytes) {
        Ok(text) => for_each_line(block, mark, |range| each(&text[range])),
        Err(_) => for_each_line(block, mark, |range| {
            each(&String::from_utf8_lossy(&block.bytes[range]))
        }),
    }
}
