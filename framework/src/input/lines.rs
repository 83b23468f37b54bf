//! Lines in the bytes of a split, in blocks of whole lines, and byte order marks. Newlines are found without
//! a branch that depends on the text, and their positions stored in a list. For lines of usual length that
//! takes about half the time of a `memchr` call per line.

use std::ffi::OsStr;
use std::ops::Range;
use std::path::Path;

use napreduce_connectors::bytes::{ReadError, StoredFile};
use napreduce_connectors::compression::Compression;
use napreduce_connectors::decode;
use napreduce_data::{GROUP_BYTES, lend, newline_mask};
use napreduce_protocol::Split;
use napreduce_task::ReadPosition;

use super::error::InputError;
use super::format::Splitting;
use super::opening::open_path;
use super::source::Source;
use super::window::Window;

/// Returns where a file of lines may be cut; a compressed file only if it has several blocks that are found
/// from anywhere.
pub(crate) fn lines_splitting(path: &Path) -> Splitting {
    let open = || StoredFile::whole(open_path(path).map_err(ReadError::Unreadable)?);
    match Compression::of(path) {
        Some(compression) if !decode::has_several_blocks(compression, open) => {
            Splitting::Compressed(compression)
        }
        _ => Splitting::Anywhere,
    }
}

/// The mark of UTF-8, and its length.
pub(crate) const UTF_8_MARK: &[u8] = b"\xef\xbb\xbf";
pub(crate) const MARK_BYTES: usize = UTF_8_MARK.len();

/// Marks of unsupported encodings. No UTF-8 text begins with one of these.
const OTHERS: [(&str, &[u8]); 4] = [
    ("UTF-32", b"\xff\xfe\0\0"),
    ("UTF-32", b"\0\0\xfe\xff"),
    ("UTF-16", b"\xff\xfe"),
    ("UTF-16", b"\xfe\xff"),
];

/// Digits of the number in the name of a part, at least.
const PART_DIGITS: usize = 5;

/// Returns whether a path is that of a part file, such as `part-r-00000`. Its records are read back as they were
/// written: marks and carriage returns at the end of a line belong to them.
pub(crate) fn is_part(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(OsStr::to_str) else {
        return false;
    };
    let number = name
        .strip_prefix("part-r-")
        .or_else(|| name.strip_prefix("part-m-"));
    let Some(number) = number else { return false };
    let digits = number.bytes().take_while(u8::is_ascii_digit).count();
    digits >= PART_DIGITS && (digits == number.len() || number[digits..].starts_with('.'))
}

/// Returns the length of the UTF-8 mark at the start of a file; a part file has none.
///
/// # Errors
/// Fails with `OtherEncoding` if it begins with a mark of UTF-16 or UTF-32.
pub(crate) fn mark_length(path: &Path, start: &[u8]) -> Result<usize, InputError> {
    if is_part(path) {
        return Ok(0);
    }
    if start.starts_with(UTF_8_MARK) {
        return Ok(MARK_BYTES);
    }
    match OTHERS.iter().find(|(_, mark)| start.starts_with(mark)) {
        Some((encoding, _)) => Err(InputError::OtherEncoding {
            path: path.to_owned(),
            encoding,
        }),
        None => Ok(0),
    }
}

/// Reads a split as blocks of whole lines, one buffer at a time.
pub(crate) struct LineBlocks {
    source: Source,
    window: Window,
    /// Lines that begin here or later belong to the next split.
    end: u64,
    /// Whether the rest of a line that began before this split is still to be skipped.
    inside_line: bool,
    /// Available bytes of the window that contain no newline.
    searched: usize,
    /// Length of the last block.
    block: usize,
    /// Whether a carriage return before a newline belongs to its line.
    keeps_returns: bool,
    /// Where the current line begins.
    line: ReadPosition,
}

impl LineBlocks {
    pub(crate) fn open(split: &Split, offset: u64, memory: usize) -> Result<Self, InputError> {
        let (source, first, inside_line) = Source::open_lines(split, offset, memory)?;
        let compressed = source.is_compressed();
        let expected = (!compressed).then(|| split.file_length.saturating_sub(first));
        // One byte more than the longest line, for its newline.
        let window = Window::new(first, expected, 1, memory.saturating_add(1));
        Ok(LineBlocks {
            line: source.position_at(offset),
            source,
            window,
            end: if compressed { u64::MAX } else { split.end() },
            inside_line,
            searched: 0,
            block: 0,
            keeps_returns: is_part(&split.path),
        })
    }

    /// Advances to the next block of lines; `false` at the end of the split.
    pub(crate) fn advance(&mut self) -> Result<bool, InputError> {
        self.window.take(std::mem::take(&mut self.block));
        if self.inside_line && !self.pass_over_line()? {
            self.line.set(if self.source.is_compressed() {
                self.window.offset()
            } else {
                self.end
            });
            return Ok(false);
        }
        loop {
            self.line.set(self.window.offset());
            if self.window.offset() >= self.end {
                return Ok(false);
            }
            let available = self.window.available().len();
            if let Some(block) = self.whole_lines() {
                self.block = block;
            } else if self.window.ended() {
                self.block = available;
            } else {
                self.searched = available;
                self.fill()?;
                continue;
            }
            self.searched = 0;
            self.enter_block();
            return Ok(self.block > 0);
        }
    }

    /// Fills the window. The end of a split of compressed blocks is only known after this.
    fn fill(&mut self) -> Result<(), InputError> {
        self.window.fill(&mut self.source, self.end)?;
        self.end = self.source.end().unwrap_or(self.end);
        Ok(())
    }

    /// In a compressed file, the lines of a block count as the compressed bytes read for it.
    fn enter_block(&self) {
        if let Some(position) = self.source.compressed_position() {
            let start = self.window.offset();
            self.line.enter(
                start..start + self.block as u64,
                self.line.bytes_end()..position,
            );
        }
    }

    /// Returns the length of the available whole lines that belong to this split.
    fn whole_lines(&self) -> Option<usize> {
        let available = self.window.available();
        let mut search = self.searched..available.len();
        // The last line is the one with the last byte of the split.
        let last = usize::try_from(self.end - 1 - self.window.offset()).unwrap_or(usize::MAX);
        if last < available.len() {
            let from = last.max(self.searched);
            if let Some(newline) = memchr::memchr(b'\n', &available[from..]) {
                return Some(from + newline + 1);
            }
            search.end = from;
        }
        let from = search.start;
        memchr::memrchr(b'\n', &available[search]).map(|newline| from + newline + 1)
    }

    /// Skips the rest of a line that began before this split; returns `false` if no line begins in it. The
    /// line may have any length, so it is not buffered.
    fn pass_over_line(&mut self) -> Result<bool, InputError> {
        // A line that begins in the split follows a newline before the split's last byte.
        while self.window.offset().saturating_add(1) < self.end {
            if let Some(newline) = memchr::memchr(b'\n', self.window.available()) {
                self.window.take(newline + 1);
                self.inside_line = false;
                return Ok(true);
            }
            self.window.take(self.window.available().len());
            if self.window.ended() {
                break;
            }
            self.fill()?;
        }
        Ok(false)
    }

    /// Returns the current block.
    #[inline]
    pub(crate) fn block(&self) -> LineBlock<'_> {
        let bytes = &self.window.available()[..self.block];
        let keeps_returns = self.keeps_returns;
        LineBlock {
            bytes,
            offset: self.window.offset(),
            keeps_returns,
            line: &self.line,
        }
    }

    /// Returns the offset of the file's first line.
    #[cfg(feature = "csv")]
    pub(crate) fn file_start(&self) -> Option<u64> {
        self.source.file_start()
    }

    /// Returns the length of the byte order mark of the current block, if the block begins the file.
    ///
    /// # Errors
    /// Fails if the mark is not that of UTF-8.
    pub(crate) fn mark(&self) -> Result<usize, InputError> {
        let block = self.block();
        if self.source.file_start() == Some(block.offset) {
            mark_length(self.source.path(), block.bytes)
        } else {
            Ok(0)
        }
    }

    /// Returns the shared position of the current line.
    pub(crate) fn position(&self) -> ReadPosition {
        self.line.clone()
    }

    /// Returns the offset of the current line.
    pub(crate) fn offset(&self) -> u64 {
        self.line.get()
    }

    /// Returns how many bytes of the split are done.
    pub(crate) fn consumed(&self) -> u64 {
        self.source.consumed(self.line.get())
    }

    #[cold]
    pub(crate) fn not_text(&self, at: usize) -> InputError {
        InputError::NotText {
            path: self.source.path().to_owned(),
            offset: self.window.offset() + at as u64,
            line: None,
        }
    }
}

/// Whole lines in memory.
#[derive(Clone, Copy)]
pub(crate) struct LineBlock<'a> {
    pub(crate) bytes: &'a [u8],
    /// Offset of the block in the file.
    pub(crate) offset: u64,
    /// Whether a carriage return before a newline belongs to its line.
    keeps_returns: bool,
    /// The shared offset of the current line.
    pub(crate) line: &'a ReadPosition,
}

/// Calls `each` with the range of each line of a block, without its newline and, unless the block keeps them, one
/// CR before that. The first line is also stripped of the `mark` bytes of a byte order mark, which are no line by
/// themselves. Updates the offset of the current line; at
/// the end it is that after the last line.
#[inline]
pub(crate) fn for_each_line<E>(
    LineBlock {
        bytes: block,
        offset: base,
        keeps_returns,
        line,
    }: LineBlock<'_>,
    mut mark: usize,
    mut each: impl FnMut(Range<usize>) -> Result<(), E>,
) -> Result<(), E> {
    let mut start = 0;
    let mut newlines = Newlines::new();
    let end_of = |start: usize, end: usize| {
        if keeps_returns {
            end
        } else {
            without_return(block, start, end)
        }
    };
    lend(block, || {
        for (part, part_start) in block.chunks(PART_BYTES).zip((0..).step_by(PART_BYTES)) {
            for position in newlines.find(part) {
                let newline = part_start + usize::from(*position);
                line.set(base + start as u64);
                let text = start + std::mem::take(&mut mark);
                each(text..end_of(text, newline))?;
                start = newline + 1;
            }
        }
        let text = start + mark;
        if text < block.len() {
            line.set(base + start as u64);
            each(text..end_of(text, block.len()))?;
        }
        line.set(base + block.len() as u64);
        Ok(())
    })
}

#[inline]
fn without_return(block: &[u8], start: usize, end: usize) -> usize {
    if end > start && block[end - 1] == b'\r' {
        end - 1
    } else {
        end
    }
}

/// Bytes of a block searched at a time.
const PART_BYTES: usize = 4096;
/// Newlines per group that are stored without checking whether they exist.
const EXPECTED: usize = 2;

/// The newlines of one part.
struct Newlines {
    positions: [u16; PART_BYTES + GROUP_BYTES],
}

impl Newlines {
    fn new() -> Self {
        Newlines {
            positions: [0; PART_BYTES + GROUP_BYTES],
        }
    }

    /// Returns the positions of all newlines in `part`, which has at most [`PART_BYTES`] bytes.
    #[inline]
    fn find(&mut self, part: &[u8]) -> &[u16] {
        let (groups, rest) = part.as_chunks::<GROUP_BYTES>();
        let mut count = 0;
        let mut offset = 0;
        for group in groups {
            count += self.note(count, offset, newline_mask(group));
            offset += GROUP_BYTES as u16;
        }
        if !rest.is_empty() {
            let mut last = [0; GROUP_BYTES];
            last[..rest.len()].copy_from_slice(rest);
            count += self.note(count, offset, newline_mask(&last));
        }
        &self.positions[..count]
    }

    /// Appends the set bits of `mask`, counted from `offset`, after the first `count` positions; returns
    /// their number.
    #[inline]
    fn note(&mut self, count: usize, offset: u16, mut mask: u64) -> usize {
        let found = mask.count_ones() as usize;
        let slots = &mut self.positions[count..count + GROUP_BYTES];
        for slot in &mut slots[..EXPECTED] {
            *slot = offset + mask.trailing_zeros() as u16;
            mask &= mask.wrapping_sub(1);
        }
        let mut next = EXPECTED;
        while mask != 0 {
            slots[next] = offset + mask.trailing_zeros() as u16;
            mask &= mask - 1;
            next += 1;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn check(part: &[u8]) {
        let naive: Vec<u16> = (0..)
            .zip(part)
            .filter(|(_, byte)| **byte == b'\n')
            .map(|(at, _)| at)
            .collect();
        assert_eq!(Newlines::new().find(part), naive);
    }

    proptest! {
        #[test]
        fn all_newlines_are_found(part in vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..300)) {
            check(&part);
        }
    }

    #[test]
    fn any_newline_pattern_is_found() {
        check(&[b'\n'; PART_BYTES]);
        for at in 0..PART_BYTES {
            let mut part = [b'\x0B'; PART_BYTES];
            part[at] = b'\n';
            check(&part);
            check(&part[..=at]);
        }
    }
}
