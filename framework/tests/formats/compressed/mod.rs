//! Lines in bzip2, xz, lz4, snappy and seekable zstd. Gzip and plain zstd are in `tests/framework`.

#![allow(dead_code, unused_imports, reason = "each feature uses some of it")]

#[cfg(feature = "bzip2")]
mod bzip2;
#[cfg(feature = "lz4")]
mod lz4;
mod partitions;
mod seekable_zstd;
#[cfg(feature = "snappy")]
mod snappy;
#[cfg(feature = "xz")]
mod xz;

use std::fs;
use std::io::Write;

use napreduce::input::{ByteLines, InputError, InputFormat, RecordReader, Split, Splitting};
use napreduce::testing::JobTest;
use napreduce::{Emit, Job};

use super::kit::{TestFile, filtered, python, read, refused_or_intact, same_at_every_cut};

fn show(line: &[u8]) -> String {
    String::from_utf8_lossy(line).into_owned()
}

/// Lines that are not fully compressible; one is long and one is empty.
fn content(lines: u64) -> Vec<u8> {
    let line = |number: u64| match number % 97 {
        13 => "\n".to_owned(),
        50 => format!("{number} {}\n", "long ".repeat(300)),
        _ => format!(
            "{number} {:x}\n",
            number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
        ),
    };
    (0..lines).map(line).collect::<String>().into_bytes()
}

fn lines_of(content: &[u8]) -> Vec<String> {
    let mut lines: Vec<String> = content.split(|byte| *byte == b'\n').map(show).collect();
    if content.is_empty() || content.ends_with(b"\n") {
        lines.pop();
    }
    lines
}

/// Reads the output of the command-line tool in one pass and with resumes.
fn read_whole(name: &str, compressed: &[u8], content: &[u8]) {
    let file = TestFile::new(name, compressed);
    let expected = lines_of(content);
    for resume in [false, true] {
        let lines =
            read(&ByteLines, &file.whole(), resume, show).unwrap_or_else(|error| panic!("{error}"));
        assert!(
            lines == expected,
            "{name}: {} lines instead of {}",
            lines.len(),
            expected.len()
        );
    }
}

/// A truncated file is rejected as incomplete, unless truncated at one of `ends`.
fn cut_anywhere(name: &str, compressed: &[u8], content: &[u8], ends: &[usize]) {
    let intact = lines_of(content);
    for cut in 1..compressed.len() {
        let file = TestFile::new(name, &compressed[..cut]);
        let said = refused_or_intact(&ByteLines, &file, &intact, show);
        if ends.contains(&cut) {
            assert_eq!(said, None, "{name} cut at {cut}");
        } else {
            let said =
                said.unwrap_or_else(|| panic!("{name} cut at byte {cut} is taken for whole"));
            assert!(
                said.ends_with("ends early; the file is incomplete"),
                "cut at byte {cut}: {said}"
            );
        }
    }
}

/// The same, and a flipped bit never changes the lines without an error. Returns the number of detected
/// flips.
fn damage(name: &str, compressed: &[u8], content: &[u8], ends: &[usize]) -> usize {
    cut_anywhere(name, compressed, content, ends);
    let intact = lines_of(content);
    let bits = (0..compressed.len() * 8).filter(|bit| {
        let mut flipped = compressed.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        refused_or_intact(&ByteLines, &TestFile::new(name, flipped), &intact, show).is_some()
    });
    bits.count()
}

fn by_first_letter() -> Job {
    Job::bytes()
        .map(|line: &[u8], out: &mut Emit<Vec<u8>, u64>| out.emit(&line[..line.len().min(1)], 1))
        .reduce(|letter, counts, out| out.emit(show(letter), counts.sum()))
}

/// The job is preempted at random points, and reads the file as a whole and in splits.
fn is_preemption_safe(extension: &str, compressed: &[u8], split_size: u64) {
    let test = JobTest::new(by_first_letter)
        .input(compressed)
        .input_extension(extension);
    let whole = test.run();
    let test = test.split_size(split_size).combine_files(false);
    assert_eq!(test.run().text(), whole.text());
    test.assert_safe_at_random(1, 8);
}

/// Compresses as Hadoop does: blocks of this much content, each in two chunks.
#[cfg(any(feature = "lz4", feature = "snappy"))]
fn hadoop(content: &[u8], compress: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let mut out = Vec::new();
    let length = |bytes: &[u8]| {
        u32::try_from(bytes.len())
            .expect("a short one")
            .to_be_bytes()
    };
    for block in content.chunks(1000) {
        out.extend_from_slice(&length(block));
        for chunk in block.chunks(700) {
            let chunk = compress(chunk);
            out.extend_from_slice(&length(&chunk));
            out.extend_from_slice(&chunk);
        }
    }
    out
}

/// Rejects files of other formats under this extension, and blocks with wrong lengths.
#[cfg(any(feature = "lz4", feature = "snappy"))]
fn other_data_is_no_block(name: &str, compress: impl Fn(&[u8]) -> Vec<u8>) {
    let said = |bytes: &[u8], memory: usize| {
        let file = TestFile::new(name, bytes);
        let mut reader = ByteLines
            .open(&file.whole(), memory)
            .expect("nothing is read yet");
        let error = loop {
            match reader.read_batch(&mut |_: &[u8]| Ok::<(), InputError>(())) {
                Ok(true) => {}
                Ok(false) => panic!("{name}: {} bytes are taken for whole", bytes.len()),
                Err(error) => break error.to_string(),
            }
        };
        assert!(!error.contains("memory"), "{error}");
        error
    };
    let large = b"a,b,c\n".repeat(3_000_000);
    for other in [
        &b"n\n"[..],
        b"line",
        b"a line of text\n",
        b"\xef\xbb\xbfa line",
        b"\x89PNG\r\n\x1a\n",
        b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0>\0",
        b"\0a\0 \0l\0i\0n\0e\0\n",
        b"\xf0\0\0\0\xf0\0\0\0\x01",
        &large,
    ] {
        for memory in [1 << 20, 64 << 20] {
            let error = said(other, memory);
            assert!(error.contains(" header expected)"), "{error}");
        }
    }
    for (other, what) in [
        (&b"\x1f\x8b\x08\0\0\0\0\0"[..], "contains gzip data"),
        (b"PK\x03\x04", "with zip"),
    ] {
        let error = ByteLines
            .check(&TestFile::new(name, other).path)
            .expect_err("it is something else");
        assert!(error.to_string().contains(what), "{error}");
    }
    let block = hadoop(b"one\ntwo\n", &compress);
    assert!(ByteLines.check(&TestFile::new(name, &block).path).is_ok());
    let error = said(&[&block[..], b"a line of text\n"].concat(), 1 << 20);
    assert!(
        error.contains(&format!("no block at byte {}", block.len())),
        "{error}"
    );
    for lie in [1_u32, 7, 9, 1000] {
        let lying = [&lie.to_be_bytes()[..], &block[4..]].concat();
        said(&lying, 1 << 20);
    }
    // A single write longer than the writer's buffer makes a block of many chunks.
    let chunk = vec![b'x'; 1 << 20];
    let compressed = compress(&chunk);
    let mut many = (20_u32 << 20).to_be_bytes().to_vec();
    for _ in 0..20 {
        many.extend(
            u32::try_from(compressed.len())
                .expect("short")
                .to_be_bytes(),
        );
        many.extend(&compressed);
    }
    let records = napreduce::input::FixedRecords { length: 1 << 20 };
    let file = TestFile::new(name, &many);
    let read = read(&records, &file.whole(), false, |record| {
        record.len().to_string()
    })
    .expect("it is intact");
    assert_eq!(read.len(), 20);
}
