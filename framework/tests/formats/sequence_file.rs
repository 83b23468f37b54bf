//! Hadoop's SequenceFiles in all three layouts, written by the test according to the specification.

use std::io::Write;

use flate2::{Compression, write::ZlibEncoder};
use napreduce::input::InputFormat;
use napreduce::sequence_file::SequenceFiles;
use napreduce::testing::JobTest;
use napreduce::{Emit, Job};

use super::kit::{TestFile, read, refused_or_intact, same_at_every_cut};

const MARKER: &[u8; 16] = b"\x01\xff\xff\xffmarker of 16";
const TEXT: &str = "org.apache.hadoop.io.Text";
const LONG: &str = "org.apache.hadoop.io.LongWritable";

#[derive(Clone, Copy, Debug, PartialEq)]
enum Layout {
    Plain,
    Records,
    Blocks,
}

/// A length below 128 in Hadoop's encoding.
fn length(bytes: &[u8]) -> u8 {
    u8::try_from(bytes.len())
        .ok()
        .filter(|length| *length < 128)
        .expect("a short one")
}

fn text(text: &str) -> Vec<u8> {
    [&[length(text.as_bytes())], text.as_bytes()].concat()
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("a Vec takes every write");
    encoder.finish().expect("a Vec takes every write")
}

/// Hadoop's class name of a codec, and its compression function.
type Codec<'c> = (&'c str, &'c dyn Fn(&[u8]) -> Vec<u8>);

const ZLIB: Codec<'_> = ("DefaultCodec", &zlib);

fn head(layout: Layout, key: &str, value: &str, codec: &str) -> Vec<u8> {
    let flags = [
        u8::from(layout != Layout::Plain),
        u8::from(layout == Layout::Blocks),
    ];
    let mut file = [b"SEQ\x06", &text(key)[..], &text(value), &flags].concat();
    if layout != Layout::Plain {
        file.extend(text(&format!("org.apache.hadoop.io.compress.{codec}")));
    }
    file.extend(1_u32.to_be_bytes());
    file.extend([text("by"), text("hand")].concat());
    file.extend(MARKER);
    file
}

/// A file of numbers and texts, with a sync marker before every third record.
fn file(layout: Layout, records: i64) -> Vec<u8> {
    file_in(layout, records, ZLIB)
}

fn file_in(layout: Layout, records: i64, (codec, compress): Codec<'_>) -> Vec<u8> {
    let mut file = head(layout, LONG, TEXT, codec);
    let all: Vec<(Vec<u8>, Vec<u8>)> = (0..records)
        .map(|number| (number.to_be_bytes().to_vec(), text(&format!("ä{number}"))))
        .collect();
    for (number, three) in all.chunks(3).enumerate() {
        if number > 0 || layout == Layout::Blocks {
            file.extend([&[0xff; 4][..], MARKER].concat());
        }
        if layout == Layout::Blocks {
            file.push(u8::try_from(three.len()).expect("three"));
            let keys: Vec<u8> = three.iter().flat_map(|(key, _)| key.clone()).collect();
            let values: Vec<u8> = three.iter().flat_map(|(_, value)| value.clone()).collect();
            let key_lengths: Vec<u8> = three.iter().map(|(key, _)| length(key)).collect();
            let value_lengths: Vec<u8> = three.iter().map(|(_, value)| length(value)).collect();
            for part in [key_lengths, keys, value_lengths, values] {
                let part = compress(&part);
                file.push(length(&part));
                file.extend(part);
            }
            continue;
        }
        for (key, value) in three {
            let value = if layout == Layout::Records {
                compress(value)
            } else {
                value.clone()
            };
            file.extend(
                u32::try_from(key.len() + value.len())
                    .expect("short")
                    .to_be_bytes(),
            );
            file.extend(u32::try_from(key.len()).expect("short").to_be_bytes());
            file.extend([&key[..], &value].concat());
        }
    }
    file
}

fn numbers() -> SequenceFiles<i64, String> {
    SequenceFiles::default()
}

fn show((number, text): (i64, &str)) -> String {
    format!("{number} {text}")
}

fn expected(records: i64) -> Vec<String> {
    (0..records)
        .map(|number| format!("{number} ä{number}"))
        .collect()
}

const LAYOUTS: [Layout; 3] = [Layout::Plain, Layout::Records, Layout::Blocks];

#[test]
fn every_cut_gives_each_record_once() {
    for layout in LAYOUTS {
        for records in [0, 1, 11] {
            let file = TestFile::new("a.seq", file(layout, records));
            assert_eq!(
                same_at_every_cut(&numbers(), &file, 1..=file.size, show),
                expected(records),
                "{layout:?}"
            );
        }
    }
    let empty = TestFile::new("a.seq", "");
    assert_eq!(
        read(&numbers(), &empty.whole(), false, show).expect("it is empty"),
        [""; 0]
    );
}

#[test]
fn reader_is_preemption_safe_at_every_record() {
    let count = || {
        Job::sequence_file::<i64, String>()
            .map(|(number, text), out: &mut Emit<u64, i64>| out.emit(text.len() as u64, number))
            .reduce(|length, numbers, out| out.emit(length, numbers.sum()))
    };
    for layout in LAYOUTS {
        JobTest::new(count)
            .input(file(layout, 8))
            .split_size(70)
            .assert_preemption_safe();
    }
}

/// Hadoop's framing: one block per kilobyte, and an empty block at the end.
#[cfg(any(feature = "lz4", feature = "snappy"))]
fn framed(content: &[u8], compress: &dyn Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let number = |bytes: &[u8]| u32::try_from(bytes.len()).expect("short").to_be_bytes();
    let mut out = Vec::new();
    for block in content.chunks(10) {
        let chunk = compress(block);
        out.extend([&number(block)[..], &number(&chunk), &chunk, &[0; 4]].concat());
    }
    out
}

#[test]
fn hadoop_codec_without_feature_is_named() {
    for (codec, feature, is_read) in [
        ("Lz4Codec", "lz4", cfg!(feature = "lz4")),
        ("SnappyCodec", "snappy", cfg!(feature = "snappy")),
        ("BZip2Codec", "bzip2", cfg!(feature = "bzip2")),
    ] {
        if is_read {
            continue;
        }
        let file = TestFile::new("a.seq", file_in(Layout::Blocks, 1, (codec, &zlib)));
        let error = read(&numbers(), &file.whole(), false, show)
            .expect_err("it is not read")
            .to_string();
        assert!(
            error.ends_with(&format!(
                "build this program with the feature {feature} of napreduce"
            )),
            "{error}"
        );
    }
    #[cfg(feature = "lz4")]
    check_codec(("Lz4Codec", &|bytes| {
        framed(bytes, &lz4_flex::block::compress)
    }));
    #[cfg(feature = "snappy")]
    check_codec(("SnappyCodec", &|bytes| {
        framed(bytes, &|chunk| {
            snap::raw::Encoder::new()
                .compress_vec(chunk)
                .expect("short")
        })
    }));
    check_codec(("ZStandardCodec", &|bytes| {
        ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
    }));
    #[cfg(feature = "bzip2")]
    check_codec(("BZip2Codec", &|bytes| {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::new(9));
        encoder.write_all(bytes).expect("a Vec takes every write");
        encoder.finish().expect("a Vec takes every write")
    }));
}

fn check_codec(codec: Codec<'_>) {
    for layout in [Layout::Records, Layout::Blocks] {
        let bytes = file_in(layout, 11, codec);
        let file = TestFile::new("a.seq", &bytes);
        let lines = same_at_every_cut(&numbers(), &file, [7, 40, 300], show);
        assert_eq!(lines, expected(11), "{} {layout:?}", codec.0);
        for cut in 1..bytes.len() {
            refused_or_intact(
                &numbers(),
                &TestFile::new("a.seq", &bytes[..cut]),
                &expected(11),
                show,
            );
        }
    }
}

#[test]
fn record_types_come_from_header() {
    let whole = TestFile::new("a.seq", file(Layout::Plain, 1));
    let error = read(
        &SequenceFiles::<i32, String>::default(),
        &whole.whole(),
        false,
        |_| String::new(),
    );
    let error = error.expect_err("its keys are longs").to_string();
    assert!(
        error.ends_with(
            "its keys are org.apache.hadoop.io.LongWritable, but this job reads org.apache.hadoop.io.IntWritable"
        ),
        "{error}"
    );
    let mut bytes = head(
        Layout::Plain,
        "org.apache.hadoop.io.NullWritable",
        "org.apache.hadoop.io.BytesWritable",
        "",
    );
    bytes.extend(b"\0\0\0\x06\0\0\0\0\0\0\0\x02ab");
    let whole = TestFile::new("a.seq", bytes);
    let read = read(
        &SequenceFiles::<(), Vec<u8>>::default(),
        &whole.whole(),
        false,
        |record| format!("{record:?}"),
    );
    assert_eq!(read.expect("it is intact"), ["((), [97, 98])"]);
}

#[test]
fn damaged_files_are_rejected_by_name() {
    for layout in LAYOUTS {
        let bytes = file(layout, 4);
        for cut in 1..bytes.len() {
            let file = TestFile::new("a.seq", &bytes[..cut]);
            refused_or_intact(&numbers(), &file, &expected(4), show);
        }
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x55;
            let file = TestFile::new("a.seq", changed);
            if let Err(error) = read(&numbers(), &file.whole(), false, show) {
                assert!(
                    error.to_string().contains(&file.path.display().to_string()),
                    "{error}"
                );
            }
        }
    }
    let said = |bytes: &[u8]| {
        let file = TestFile::new("a.seq", bytes);
        let error = read(&numbers(), &file.whole(), false, show)
            .expect_err("it is refused")
            .to_string();
        error.replace(&file.path.display().to_string(), "a")
    };
    let begin = head(Layout::Plain, LONG, TEXT, "");
    let with = |record: &[u8]| said(&[&begin[..], record].concat());
    assert!(with(b"\x7f\xff\xff\xff\0\0\0\x08").ends_with("it ends early; the file is incomplete"));
    assert!(
        with(b"\0\0\0\x01\0\0\0\x08a")
            .ends_with("it is damaged: a key of 8 bytes in a record of 1")
    );
    assert!(with(&[0xff; 20]).ends_with("it is damaged: a sync marker is missing"));
    assert!(
        said(b"SEQ\x05")
            .ends_with("it is a SequenceFile of version 5, but this program reads version 6")
    );
    assert!(said(b"text\n").ends_with("not a SequenceFile"));
    assert!(numbers().check(&TestFile::new("a", begin).path).is_ok());
}
