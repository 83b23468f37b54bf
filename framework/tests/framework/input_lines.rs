//! Lines of split files, compared with a naive reading of the whole file.

use std::fs;
use std::path::{Path, PathBuf};

use napreduce::input::{
    ByteLines, InputError, InputFormat, LossyLines, RecordReader, Split, TextLines,
};
use proptest::collection::vec;
use proptest::prelude::*;
use tempfile::TempDir;

/// An error that stops reading early.
enum Stop {
    Wanted,
    Input(InputError),
}

impl From<InputError> for Stop {
    fn from(error: InputError) -> Self {
        Stop::Input(error)
    }
}

struct TestFile {
    directory: TempDir,
    size: u64,
}

impl TestFile {
    fn new(content: &[u8]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::write(directory.path().join("file"), content).expect("a written file");
        TestFile {
            directory,
            size: content.len() as u64,
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("file")
    }

    fn whole(&self) -> Split {
        Split::whole(&self.path(), self.size)
    }

    /// Returns the splits of the file at `cuts`, which may be unordered or repeated.
    fn splits(&self, cuts: &[u64]) -> Vec<Split> {
        let mut ends: Vec<u64> = cuts
            .iter()
            .map(|cut| cut % (self.size + 1))
            .chain([self.size])
            .collect();
        ends.sort_unstable();
        let mut offset = 0;
        ends.into_iter()
            .map(|end| {
                let length = end - std::mem::replace(&mut offset, end);
                Split {
                    path: self.path(),
                    offset: end - length,
                    length,
                    file_length: self.size,
                    version: None,
                }
            })
            .filter(|split| split.length > 0)
            .collect()
    }
}

/// The offset of a line, and the line.
type Line = (u64, Vec<u8>);

/// Every line with its offset.
fn naive(content: &[u8]) -> Vec<Line> {
    let mut offset = 0;
    let mut lines: Vec<_> = content
        .split(|byte| *byte == b'\n')
        .map(|line| {
            let start = offset;
            offset += line.len() as u64 + 1;
            (start, line.strip_suffix(b"\r").unwrap_or(line).to_vec())
        })
        .collect();
    if content.last().is_none_or(|byte| *byte == b'\n') {
        lines.pop();
    }
    lines
}

/// Reads the lines of a split with their offsets, which are found by failing at each line once. If `resume`,
/// a new reader continues after every batch.
fn read<F: InputFormat>(
    format: &F,
    split: &Split,
    memory: usize,
    resume: bool,
    bytes: impl Fn(F::Record<'_>) -> Vec<u8>,
) -> Result<Vec<Line>, InputError> {
    let mut lines = Vec::new();
    let mut reader = format.open(split, memory)?;
    loop {
        let batch_at = reader.offset();
        let mut failing = format.open_at(split, batch_at, memory)?;
        let before = lines.len();
        let more = reader.read_batch(&mut |line: F::Record<'_>| -> Result<(), InputError> {
            lines.push((0, bytes(line)));
            Ok(())
        })?;
        for (number, line) in lines.iter_mut().enumerate().skip(before) {
            let mut left = number - before;
            let mut stop_at_line = |_: F::Record<'_>| match left.checked_sub(1) {
                Some(fewer) => {
                    left = fewer;
                    Ok(())
                }
                None => Err(Stop::Wanted),
            };
            let stopped = loop {
                match failing.read_batch(&mut stop_at_line) {
                    Ok(true) => {}
                    other => break other,
                }
            };
            match stopped {
                Err(Stop::Wanted) => {}
                Err(Stop::Input(error)) => panic!("{error}"),
                Ok(_) => panic!("line {number} is missing"),
            }
            line.0 = failing.offset();
            failing = format.open_at(split, batch_at, memory)?;
        }
        assert!(reader.consumed() <= split.length);
        if !more {
            assert_eq!(reader.consumed(), split.length);
            return Ok(lines);
        }
        if resume {
            reader = format.open_at(split, reader.offset(), memory)?;
        }
    }
}

fn read_bytes(split: &Split, memory: usize, resume: bool) -> Result<Vec<Line>, InputError> {
    read(&ByteLines, split, memory, resume, |line: &[u8]| {
        line.to_vec()
    })
}

fn read_text(split: &Split, memory: usize, resume: bool) -> Result<Vec<Line>, InputError> {
    read(&TextLines, split, memory, resume, |line: &str| {
        line.as_bytes().to_vec()
    })
}

fn check(content: &[u8], cuts: &[u64], memory: usize, resume: bool) {
    let file = TestFile::new(content);
    let splits = file.splits(cuts);
    let all = |read: fn(&Split, usize, bool) -> Result<Vec<Line>, InputError>| {
        let mut lines = Vec::new();
        for split in &splits {
            lines.extend(read(split, memory, resume).expect("the file can be read"));
        }
        lines
    };
    assert_eq!(all(read_bytes), naive(content), "{splits:?}");
    if std::str::from_utf8(content).is_ok() {
        assert_eq!(all(read_text), naive(content), "{splits:?}");
    }
}

/// Lines of every shape: empty, with NUL, with CR inside and at the end, with multibyte characters, and
/// longer than the buffer.
fn content() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "\n",
        "\n",
        "\r\n",
        "a",
        "bc",
        "\0",
        "\r",
        "é",
        "a longer piece of a line",
    ]);
    vec(piece, 0..60).prop_map(|pieces| pieces.concat().into_bytes())
}

proptest! {
    #[test]
    fn every_cut_and_buffer_gives_each_line_once(
        content in content(), cuts in vec(any::<u64>(), 0..6), memory in 1500..6000usize, resume: bool,
    ) {
        check(&content, &cuts, memory, resume);
    }

    #[test]
    fn byte_lines_give_each_line_once(content in vec(0..16u8, 0..300), cuts in vec(any::<u64>(), 0..6), memory in 300..5000usize) {
        check(&content, &cuts, memory, false);
    }
}

#[test]
fn every_cut_of_edge_cases_gives_each_line_once() {
    for content in [
        "",
        "\n",
        "\n\n",
        "a",
        "a\n",
        "a\nb",
        "a\r\nb\r\n",
        "\r\n\r",
        "\r\r\n",
        "ab\n\ncd\nef",
        "\0\n\0",
    ] {
        for first in 0..=content.len() as u64 {
            for second in first..=content.len() as u64 {
                check(content.as_bytes(), &[first, second], 16, true);
            }
        }
    }
}

#[test]
fn empty_file_has_no_lines() {
    let file = TestFile::new(b"");
    assert_eq!(
        read_text(&file.whole(), 100, true).expect("it can be read"),
        []
    );
    assert_eq!(
        read_bytes(&file.whole(), 0, true).expect("it can be read"),
        []
    );
}

#[test]
fn one_carriage_return_before_newline_is_removed() {
    let file = TestFile::new(b"a\r\n\r\nb\r\r\nc\r");
    let lines: Vec<_> = read_bytes(&file.whole(), 100, false)
        .expect("it can be read")
        .into_iter()
        .map(|line| line.1)
        .collect();
    assert_eq!(lines, [&b"a"[..], b"", b"b\r", b"c"]);
}

#[test]
fn lines_of_a_part_are_read_as_written() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let lines = [
        "\u{feff}first",
        "",
        "ends in \r",
        "\r",
        "\u{feff}",
        "\u{fffe}",
        "",
    ];
    let content: String = lines.iter().map(|line| format!("{line}\n")).collect();
    for name in ["part-r-00000", "part-m-00012", "part-m-123456.txt"] {
        let path = directory.path().join(name);
        fs::write(&path, &content).expect("a written file");
        let length = content.len() as u64;
        for size in 1..=length {
            let mut found = Vec::new();
            for offset in (0..length).step_by(size as usize) {
                let split = Split {
                    path: path.clone(),
                    offset,
                    length: size.min(length - offset),
                    file_length: length,
                    version: None,
                };
                found.extend(read_text(&split, 1 << 20, false).expect("it is intact"));
            }
            let found: Vec<_> = found.into_iter().map(|(_, line)| line).collect();
            assert_eq!(
                found,
                lines.map(|line| line.as_bytes().to_vec()),
                "{name} cut every {size} bytes"
            );
        }
    }
    // Other names are those of people's files.
    for name in [
        "part-r-0000",
        "part-r-00000x",
        "my-part-r-00000",
        "part-x-00000",
    ] {
        let path = directory.path().join(name);
        fs::write(&path, "\u{feff}a\r\n").expect("a written file");
        let found = read_text(&Split::whole(&path, 6), 1 << 20, false).expect("it is intact");
        assert_eq!(found[0].1, b"a", "{name}");
    }
}

#[test]
fn file_of_a_mark_alone_has_no_lines() {
    let file = TestFile::new(b"\xef\xbb\xbf");
    assert_eq!(
        read_text(&file.whole(), 1 << 20, false).expect("it is intact"),
        []
    );
    let records = napreduce::input::TextRecords::delimited_by(";");
    let found = read(&records, &file.whole(), 1 << 20, false, |record| {
        record.as_bytes().to_vec()
    });
    assert_eq!(found.expect("it is intact"), []);
    let file = TestFile::new(b"\xef\xbb\xbf\n");
    assert_eq!(
        read_text(&file.whole(), 1 << 20, false)
            .expect("it is intact")
            .len(),
        1
    );
}

#[test]
fn line_over_memory_is_rejected() {
    for newline in ["\n", ""] {
        let content = format!("ab\n{}{newline}", "x".repeat(1000));
        let file = TestFile::new(content.as_bytes());
        assert_eq!(
            read_text(&file.whole(), 1000, true).expect("it fits").len(),
            2
        );
        let error = read_text(&file.whole(), 999, true).expect_err("it does not fit");
        let path = file.path();
        assert_eq!(
            error.to_string(),
            format!(
                "line at byte 3 of {} is longer than 999B; raise --task-memory",
                path.display()
            )
        );
    }
}

#[test]
fn lines_longer_than_buffer_are_read() {
    let long = "long ".repeat(600_000);
    let content = format!("first\n{long}\nbetween\n{long}{long}\nlast\n");
    let file = TestFile::new(content.as_bytes());
    let memory = 2 * long.len();
    let lines = |split: &Split| {
        let mut lines = Vec::new();
        let mut reader = TextLines.open(split, memory).expect("it opens");
        let mut keep = |line: &str| -> Result<(), InputError> {
            lines.push((line.len(), line.chars().next()));
            Ok(())
        };
        while reader.read_batch(&mut keep).expect("it can be read") {}
        lines
    };
    let expected = [
        (5, Some('f')),
        (long.len(), Some('l')),
        (7, Some('b')),
        (2 * long.len(), Some('l')),
        (4, Some('l')),
    ];
    assert_eq!(lines(&file.whole()), expected);
    // Most splits lie inside one line and contain no line start.
    let cuts: Vec<u64> = (1..20).map(|number| number * file.size / 20).collect();
    assert_eq!(
        file.splits(&cuts)
            .iter()
            .flat_map(lines)
            .collect::<Vec<_>>(),
        expected
    );
}

#[test]
fn invalid_utf8_is_named_by_file_offset() {
    let mut content = b"0123456789\n".repeat(60_000);
    content[500_002] = 0xFF;
    let file = TestFile::new(&content);
    let message = format!(
        "{} has invalid UTF-8 at byte 500002; convert the file, read lines of bytes (Job::bytes()), or replace invalid bytes \
         (Job::lossy_text())",
        file.path().display()
    );
    let error = |split: &Split, memory| {
        let mut reader = TextLines.open(split, memory).expect("it opens");
        loop {
            match reader.read_batch(&mut |_: &str| -> Result<(), InputError> { Ok(()) }) {
                Ok(more) => assert!(more, "the bad byte was not seen"),
                Err(error) => return error.to_string(),
            }
        }
    };
    assert_eq!(error(&file.whole(), 1 << 20), message);
    assert_eq!(error(&file.whole(), 16 << 20), message);
    let split = file.splits(&[499_990]).pop().expect("two splits");
    assert_eq!(error(&split, 64), message);
    assert_eq!(read_bytes_count(&file.whole()), 60_000);
}

fn read_bytes_count(split: &Split) -> usize {
    let mut count = 0;
    let mut reader = ByteLines.open(split, 1 << 20).expect("it opens");
    let mut tally = |_: &[u8]| -> Result<(), InputError> {
        count += 1;
        Ok(())
    };
    while reader.read_batch(&mut tally).expect("it can be read") {}
    count
}

#[test]
fn shrunk_file_fails_and_grown_file_is_read_as_planned() {
    let file = TestFile::new(b"one\ntwo\nthree");
    let planned = Split {
        length: 20,
        file_length: 20,
        ..file.whole()
    };
    assert_eq!(
        read_bytes(&planned, 100, false)
            .expect_err("seven bytes are missing")
            .to_string(),
        format!(
            "{} ends at byte 13 but had 20 bytes when the job began; run the job again",
            file.path().display()
        )
    );
    let planned = Split {
        length: 8,
        file_length: 8,
        ..file.whole()
    };
    assert_eq!(
        read_bytes(&planned, 100, false)
            .expect("the planned part is there")
            .len(),
        2
    );
}

#[test]
fn missing_file_is_named() {
    let split = Split::whole(Path::new("no/such file"), 10);
    let error = TextLines
        .open(&split, 100)
        .err()
        .expect("there is no such file");
    assert_eq!(
        error.to_string(),
        "cannot read no/such file: no such file or directory"
    );
}

#[test]
fn byte_order_mark_is_removed_from_first_line() {
    let text = "\u{feff}a\u{feff}b\r\n\u{feff}c\n";
    let file = TestFile::new(text.as_bytes());
    let with = naive(text.as_bytes());
    let without = [(0, "a\u{feff}b".as_bytes().to_vec()), with[1].clone()];
    let lossy = |split: &Split, resume| {
        read(&LossyLines, split, 1 << 20, resume, |line: &str| {
            line.as_bytes().to_vec()
        })
    };
    for (cut, resume) in (0..=file.size).flat_map(|cut| [(cut, false), (cut, true)]) {
        let splits = file.splits(&[cut]);
        let all = |read: &dyn Fn(&Split) -> Result<Vec<Line>, InputError>| -> Vec<Line> {
            splits
                .iter()
                .flat_map(|split| read(split).expect("it is text"))
                .collect()
        };
        assert_eq!(
            all(&|split| read_text(split, 1 << 20, resume)),
            without,
            "text cut at {cut}"
        );
        assert_eq!(
            all(&|split| lossy(split, resume)),
            without,
            "lossy text cut at {cut}"
        );
        assert_eq!(
            all(&|split| read_bytes(split, 1 << 20, resume)),
            with,
            "bytes cut at {cut}"
        );
    }
    for empty in ["\u{feff}\n", "\u{feff}\r\n"] {
        let file = TestFile::new(empty.as_bytes());
        let lines = read_text(&file.whole(), 1 << 20, true).expect("it is text");
        assert_eq!(lines, [(0, Vec::new())], "{empty:?}");
    }
}

#[test]
fn utf_16_and_utf_32_text_is_rejected() {
    for (mark, encoding) in [
        (b"\xff\xfe".as_slice(), "UTF-16"),
        (b"\xfe\xff", "UTF-16"),
        (b"\xff\xfe\0\0", "UTF-32"),
        (b"\0\0\xfe\xff", "UTF-32"),
    ] {
        let file = TestFile::new(&[mark, b"\n\0a\0"].concat());
        let nothing = |_: &str| -> Result<(), InputError> { Ok(()) };
        let mut text = TextLines.open(&file.whole(), 1 << 20).expect("it opens");
        let error = text
            .read_batch(&mut nothing.clone())
            .expect_err("not UTF-8")
            .to_string();
        assert!(
            error.contains(&format!("is {encoding} text by its byte order mark")),
            "{error}"
        );
        assert!(
            error.contains(&format!("iconv -f {encoding} -t UTF-8 ")),
            "{error}"
        );
        let mut lossy = LossyLines.open(&file.whole(), 1 << 20).expect("it opens");
        assert!(lossy.read_batch(&mut nothing.clone()).is_err());
        read_bytes(&file.whole(), 1 << 20, false).expect("bytes are read as they are");
    }
}
