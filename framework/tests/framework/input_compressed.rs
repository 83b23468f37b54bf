//! Gzip and zstd input: members and frames, resuming, and every kind of damage.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use flate2::{Compression as Level, GzBuilder, write::GzEncoder};
use napreduce::input::{
    ByteLines, FixedRecords, InputError, InputFormat, RecordReader, Split, Splitting, TextLines,
    WholeFile, WholeFiles,
};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use tempfile::TempDir;

/// `one`, `two` and `three`, compressed by the zstd program with a checksum.
const BY_ZSTD_PROGRAM: [u8; 27] = [
    0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x68, 0x71, 0x00, 0x00, 0x6f, 0x6e, 0x65, 0x0a, 0x74, 0x77, 0x6f,
    0x0a, 0x74, 0x68, 0x72, 0x65, 0x65, 0x0a, 0xa4, 0x58, 0x89, 0x34,
];
/// `one`, compressed by the gzip program.
const BY_GZIP_PROGRAM: [u8; 24] = [
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0xcb, 0xcf, 0x4b, 0xe5, 0x02, 0x00,
    0x9f, 0xa8, 0x17, 0xf8, 0x04, 0x00, 0x00, 0x00,
];

struct TestFile {
    _directory: TempDir,
    path: PathBuf,
    size: u64,
}

impl TestFile {
    fn new(name: &str, content: &[u8]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join(name);
        fs::write(&path, content).expect("a written file");
        TestFile {
            _directory: directory,
            path,
            size: content.len() as u64,
        }
    }

    fn rewrite(&mut self, content: &[u8]) {
        // Changed in place: some file systems sync a file that was truncated and rewritten, which takes
        // milliseconds.
        let mut file = fs::OpenOptions::new()
            .write(true)
            .open(&self.path)
            .expect("an open file");
        file.write_all(content).expect("a written file");
        file.set_len(content.len() as u64)
            .expect("a file of that length");
        self.size = content.len() as u64;
    }

    fn whole(&self) -> Split {
        Split::whole(&self.path, self.size)
    }

    /// Returns all lines and the error after them.
    fn lines(&self, memory: usize) -> (Vec<Vec<u8>>, Option<InputError>) {
        let mut lines = Vec::new();
        let mut reader = match ByteLines.open(&self.whole(), memory) {
            Ok(reader) => reader,
            Err(error) => return (lines, Some(error)),
        };
        loop {
            let batch = reader.read_batch(&mut |line: &[u8]| -> Result<(), InputError> {
                lines.push(line.to_vec());
                Ok(())
            });
            match batch {
                Ok(true) => {}
                Ok(false) => return (lines, None),
                Err(error) => return (lines, Some(error)),
            }
        }
    }
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Level::default());
    encoder.write_all(content).expect("a Vec takes every write");
    encoder.finish().expect("a Vec takes every write")
}

fn zstd(content: &[u8]) -> Vec<u8> {
    compress_to_vec(content, CompressionLevel::Fastest)
}

type Compress = fn(&[u8]) -> Vec<u8>;

const FORMATS: [(&str, Compress); 2] = [("a.gz", gzip), ("a.zst", zstd)];

/// Lines whose compressed form has blocks of several types.
fn content(lines: std::ops::Range<u64>) -> Vec<u8> {
    lines
        .map(|number| {
            format!(
                "{number} {:x} aaaaaaaaaaaaaaaa\n",
                number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
            )
        })
        .collect::<String>()
        .into_bytes()
}

fn split_lines(content: &[u8]) -> Vec<Vec<u8>> {
    content
        .split_inclusive(|byte| *byte == b'\n')
        .map(|line| line[..line.len() - 1].to_vec())
        .collect()
}

#[test]
fn concatenated_members_and_frames_are_read() {
    let all = content(0..40_000);
    for (name, compress) in [("a.gz", gzip as Compress), ("a.GZ", gzip), ("a.zst", zstd)] {
        let parts = [0..1, 1..1, 1..30_000, 30_000..40_000].map(|lines| compress(&content(lines)));
        let (lines, error) = TestFile::new(name, &parts.concat()).lines(4 << 20);
        assert!(error.is_none(), "{error:?}");
        assert_eq!(lines, split_lines(&all));
    }
}

#[test]
fn command_line_tool_output_is_read() {
    let (lines, error) = TestFile::new("a.zst", &BY_ZSTD_PROGRAM).lines(1 << 20);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(lines, [&b"one"[..], b"two", b"three"]);

    let mut named = GzBuilder::new()
        .filename("name")
        .comment("comment")
        .extra("extra")
        .write(Vec::new(), Level::best());
    named.write_all(b"two\n").expect("a Vec takes every write");
    let named = named.finish().expect("a Vec takes every write");
    let (lines, error) =
        TestFile::new("a.gz", &[&BY_GZIP_PROGRAM[..], &named].concat()).lines(1 << 20);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(lines, [b"one", b"two"]);
}

#[test]
fn skippable_frames_are_skipped() {
    let skippable = [
        &0x184D_2A53u32.to_le_bytes()[..],
        &70_000u32.to_le_bytes(),
        &vec![1; 70_000],
    ]
    .concat();
    let one = zstd(b"one\n");
    let two = zstd(b"two\n");
    let file = TestFile::new(
        "a.zst",
        &[&skippable[..], &one, &skippable, &two, &skippable].concat(),
    );
    let (lines, error) = file.lines(1 << 20);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(lines, [b"one", b"two"]);

    let (lines, error) =
        TestFile::new("a.zst", &[&one[..], &skippable[..60_000]].concat()).lines(1 << 20);
    assert_eq!(lines.len(), 0);
    assert!(
        error
            .expect("it is cut off")
            .to_string()
            .contains("ends early; the file is incomplete")
    );
}

#[test]
fn reader_resumes_anywhere() {
    let all = content(0..30_000);
    for (name, bytes) in [("a.gz", gzip(&all)), ("a.zst", zstd(&all))] {
        let file = TestFile::new(name, &bytes);
        let mut lines = Vec::new();
        let mut offset = 0;
        loop {
            let mut reader = TextLines
                .open_at(&file.whole(), offset, 2 << 20)
                .expect("it opens");
            let more = reader.read_batch(&mut |line: &str| -> Result<(), InputError> {
                lines.push(line.as_bytes().to_vec());
                Ok(())
            });
            assert!(reader.consumed() <= file.size);
            if !more.expect("it is intact") {
                assert_eq!(
                    (reader.offset(), reader.consumed()),
                    (all.len() as u64, file.size)
                );
                break;
            }
            offset = reader.offset();
        }
        assert_eq!(lines, split_lines(&all));
    }
}

/// A damaged file gives an error that names it after a prefix of the lines, or all lines.
fn check_damaged(file: &TestFile, intact: &[Vec<u8>]) -> Option<String> {
    let (lines, error) = file.lines(1 << 18);
    assert!(
        intact.starts_with(&lines),
        "lines were read that are not there: {lines:?}"
    );
    let error = error?;
    let path = file.path.display();
    let message = error.to_string();
    match error {
        InputError::Damaged { .. } => {
            assert!(
                message.starts_with(&format!("{path} is damaged: ")),
                "{message}"
            )
        }
        InputError::WindowTooLarge { .. } => {
            assert!(message.starts_with(&format!("{path} needs ")), "{message}")
        }
        _ => panic!("{error:?}"),
    }
    Some(message)
}

#[test]
fn truncated_file_is_rejected_except_between_members() {
    for (name, compress) in FORMATS {
        let first = compress(&content(0..10));
        let second = compress(&content(10..20));
        let both = [first.clone(), second].concat();
        let lines = split_lines(&content(0..20));
        let mut file = TestFile::new(name, b"");
        for cut in 0..both.len() {
            file.rewrite(&both[..cut]);
            let message = check_damaged(&file, &lines);
            if cut == 0 || cut == first.len() {
                assert_eq!(message, None);
            } else {
                let message = message.expect("half a member is an error");
                assert!(
                    message.ends_with(&format!("byte {cut} ends early; the file is incomplete")),
                    "{message}"
                );
            }
        }
    }
}

#[test]
fn flipped_bit_never_gives_wrong_lines() {
    for (name, compress) in FORMATS {
        let content = content(0..5);
        let bytes = compress(&content);
        let mut file = TestFile::new(name, b"");
        let found = (0..bytes.len() * 8).filter(|bit| {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            file.rewrite(&flipped);
            check_damaged(&file, &split_lines(&content)).is_some()
        });
        let found = found.count();
        assert!(
            found > bytes.len() * 6,
            "only {found} of {} flips were found in {name}",
            bytes.len() * 8
        );
    }
}

#[test]
fn uncompressed_file_is_rejected() {
    for (name, compression) in [("a.gz", "gzip"), ("a.zst", "zstd")] {
        for text in [
            &b"t"[..],
            b"text",
            b"plain text\n",
            &b"plain text\n".repeat(100_000),
        ] {
            let message = check_damaged(&TestFile::new(name, text), &[]).expect("it is plain text");
            let expected = format!(
                "{compression} data at byte 0 is not valid ({compression} header expected)"
            );
            assert!(message.ends_with(&expected), "{message}");
        }
    }
    let file = TestFile::new("a.zst", &[&zstd(b"one\n")[..], b"x"].concat());
    let message = check_damaged(&file, &[b"one".to_vec()]).expect("x is no frame");
    assert!(
        message.ends_with("is not valid (no frame there)"),
        "{message}"
    );
}

#[test]
fn zstd_window_over_memory_is_rejected() {
    // A frame whose header requests a window of 128 MiB.
    let mut frame = vec![0x28, 0xB5, 0x2F, 0xFD, 0x00, 17 << 3];
    frame.extend_from_slice(&[0x01 | 4 << 3, 0, 0]);
    frame.extend_from_slice(b"one\n");
    let file = TestFile::new("a.zst", &frame);
    let (lines, error) = file.lines(256 << 20);
    assert!(error.is_none() && lines == [b"one"], "{error:?}");
    let message = file.lines(64 << 20).1.expect("it does not fit").to_string();
    assert!(
        message.ends_with(" needs 128MiB to be decompressed; raise --task-memory"),
        "{message}"
    );
}

#[test]
fn long_line_in_small_compressed_file_is_rejected() {
    let file = TestFile::new(
        "a.gz",
        &gzip(&[b"short\n", &[b'x'; 5_000_000][..]].concat()),
    );
    assert_eq!(file.lines(5_000_000).0.len(), 2);
    let (lines, error) = file.lines(4_999_999);
    assert_eq!(lines, [b"short"]);
    assert!(
        error
            .expect("it does not fit")
            .to_string()
            .starts_with("line at byte 6 of ")
    );
}

#[test]
fn records_and_whole_files_are_decompressed_too() {
    let file = TestFile::new("a.zst", &zstd(b"aaabbbccc"));
    let mut records = Vec::new();
    let mut reader = FixedRecords { length: 3 }
        .open(&file.whole(), 1 << 20)
        .expect("it opens");
    let mut keep = |record: &[u8]| -> Result<(), InputError> {
        records.push(record.to_vec());
        Ok(())
    };
    while reader.read_batch(&mut keep).expect("it is intact") {}
    assert_eq!(records, [b"aaa", b"bbb", b"ccc"]);

    let mut reader = FixedRecords { length: 4 }
        .open(&file.whole(), 1 << 20)
        .expect("it opens");
    let error = loop {
        match reader.read_batch(&mut |_: &[u8]| -> Result<(), InputError> { Ok(()) }) {
            Ok(more) => assert!(more),
            Err(error) => break error.to_string(),
        }
    };
    let path = file.path.display();
    assert_eq!(
        error,
        format!("{path} has 9 bytes, which is not a multiple of the record length 4")
    );

    let mut reader = WholeFiles.open(&file.whole(), 9).expect("it opens");
    let mut whole = Vec::new();
    reader
        .read_batch(&mut |file: WholeFile<'_>| -> Result<(), InputError> {
            whole = file.bytes.to_vec();
            Ok(())
        })
        .expect("it is intact");
    assert_eq!(whole, b"aaabbbccc");
}

#[test]
fn splitting_compressed_file_is_rejected_with_reason() {
    let path = PathBuf::from("data.gz");
    assert!(!TextLines.splittable(&path) && TextLines.splittable("data.txt".as_ref()));
    let refusal = TextLines.splitting(&path).refusal(&path);
    assert_eq!(
        refusal.as_deref(),
        Some("data.gz is compressed with gzip and cannot be split")
    );
    assert_eq!(WholeFiles.splitting(&path), Splitting::Whole);
}

#[test]
fn gzip_members_behind_zeros_are_read() {
    let mut file = TestFile::new("a.gz", b"");
    for first in [gzip(b"one\n"), [gzip(b"one\n"), gzip(b"")].concat()] {
        for zeros in [1, 3, 511, 512, 513, 65_480, 65_536, 1 << 20] {
            file.rewrite(
                &[
                    &first[..],
                    &vec![0; zeros],
                    &gzip(b"two\n"),
                    &[0; 7],
                    &gzip(b""),
                ]
                .concat(),
            );
            let (lines, error) = file.lines(1 << 20);
            assert!(error.is_none(), "{zeros} zeros: {error:?}");
            assert_eq!(lines, [b"one", b"two"], "{zeros} zeros");
        }
    }
    // Bytes that are neither zeros nor a member hide nothing.
    for garbage in [&b"x"[..], b"\0\0x\0", &[0x1f; 70_000], &[0x1f, 0x8b, 0xff]] {
        file.rewrite(&[&gzip(b"one\n")[..], garbage, &gzip(b"two\n")].concat());
        check_damaged(&file, &[b"one".to_vec(), b"two".to_vec()]).expect("a member follows");
    }
}

#[test]
fn gzip_padding_and_trailing_garbage_are_ignored() {
    let members = [gzip(b"one\n"), gzip(b"two\n")].concat();
    for behind in [
        &[0][..],
        &[0; 1024],
        &[0; 200_000],
        b"garbage\n",
        b"\0\0x",
        &[0x1f, 0x8a],
        &[0x50; 200_000],
    ] {
        let file = TestFile::new("a.gz", &[&members[..], behind].concat());
        let (lines, error) = file.lines(1 << 20);
        assert!(error.is_none(), "{error:?}");
        assert_eq!(lines, [b"one", b"two"]);
    }
}

#[test]
fn leading_garbage_is_not_gzip() {
    for before in [&b"\0"[..], b"garbage"] {
        let file = TestFile::new("a.gz", &[before, &gzip(b"one\n")].concat());
        assert!(check_damaged(&file, &[b"one".to_vec()]).is_some());
    }
}

#[test]
fn container_file_in_text_job_is_rejected() {
    let refusal = |content: &[u8]| {
        let file = TestFile::new("a", content);
        let error = TextLines.check(&file.path).err()?.to_string();
        Some(error.replace(&file.path.display().to_string(), "a"))
    };
    for (content, format, method, feature) in [
        (
            &b"PAR1 columns PAR1"[..],
            "a Parquet file",
            "Job::parquet",
            "parquet",
        ),
        (b"Obj\x01\x02", "an Avro file", "Job::avro", "avro"),
        (
            b"SEQ\x06",
            "a SequenceFile",
            "Job::sequence_file",
            "sequence-file",
        ),
    ] {
        let expected = format!(
            "a is {format}, but this job reads another format; use {method} (feature {feature} of napreduce)"
        );
        assert_eq!(refusal(content), Some(expected));
    }
    for text in [
        &b"PAR1"[..3],
        b"PAR1, the first part",
        b"SEQ 6",
        b"Object 1",
    ] {
        assert_eq!(refusal(text), None);
    }
}

#[test]
fn unsupported_compression_is_rejected_by_name_and_magic() {
    let refusal = |name: &str, content: &[u8]| {
        let file = TestFile::new(name, content);
        let error = TextLines.check(&file.path).err()?.to_string();
        Some(error.replace(
            &format!("{}/", file.path.parent().expect("a directory").display()),
            "",
        ))
    };
    for (name, compression, undo, feature) in [
        ("a.bz2", "bzip2", "bunzip2 -k", cfg!(feature = "bzip2")),
        ("a.XZ", "xz", "unxz -k", cfg!(feature = "xz")),
        ("a.lz4", "lz4", "unlz4 -k", cfg!(feature = "lz4")),
        ("a.snappy", "snappy", "snzip -dk", cfg!(feature = "snappy")),
    ] {
        let expected = format!(
            "{name} is compressed with {compression}, which is not supported; decompress it first: {undo} {name}; or build \
             this program with the feature {compression} of napreduce"
        );
        assert_eq!(refusal(name, b"text\n"), (!feature).then_some(expected));
    }
    for (name, compression, undo) in [
        ("a.tbz2", "bzip2", "bunzip2 -k"),
        ("a.txz", "xz", "unxz -k"),
        ("a.lzma", "lzma", "unlzma -k"),
        ("a.lzo", "lzo", "lzop -d"),
        ("a.br", "brotli", "brotli -dk"),
        ("a.zip", "zip", "unzip"),
        ("a.7z", "7z", "7z x"),
        ("a.Z", "compress", "gunzip -k"),
    ] {
        let expected = format!(
            "{name} is compressed with {compression}, which is not supported; decompress it first: {undo} {name}"
        );
        assert_eq!(refusal(name, b"text\n"), Some(expected));
    }
    for (content, compression, feature) in [
        (&b"BZh51AY&SY..."[..], "bzip2", cfg!(feature = "bzip2")),
        (b"\xfd7zXZ\0...", "xz", cfg!(feature = "xz")),
        (b"\x04\x22\x4d\x18...", "lz4", cfg!(feature = "lz4")),
        (b"\xff\x06\0\0sNaPpY", "snappy", cfg!(feature = "snappy")),
        (b"7z\xbc\xaf\x27\x1c", "7z", false),
        (b"PK\x03\x04", "zip", false),
    ] {
        let error = refusal("a", content).expect("it is refused");
        let what = if feature {
            "contains"
        } else {
            "is compressed with"
        };
        assert!(
            error.starts_with(&format!("a {what} {compression}")),
            "{error}"
        );
    }
    assert_eq!(
        refusal("a.log", &gzip(b"text\n")).as_deref(),
        Some(
            "a.log contains gzip data, but its name does not end in .gz; rename it, so that it is decompressed while it is read"
        )
    );
    assert!(
        refusal("a", &zstd(b"text\n"))
            .expect("it is refused")
            .contains("contains zstd data, but")
    );
    for (name, content) in [
        ("a.gz", &gzip(b"x")[..]),
        ("a.zst", &zstd(b"x")),
        ("a.z", b"x"),
        ("bz2", b"BZh"),
        ("a", b""),
    ] {
        assert_eq!(refusal(name, content), None, "{name}");
    }
}

#[test]
fn compression_behind_skippable_frames_is_recognized() {
    let refusal = |content: &[u8]| {
        let file = TestFile::new("a", content);
        TextLines
            .check(&file.path)
            .err()
            .map(|error| error.to_string())
    };
    let skippable = |length: usize| {
        [
            &0x184D_2A5Au32.to_le_bytes()[..],
            &(length as u32).to_le_bytes(),
            &vec![b'x'; length],
        ]
        .concat()
    };
    for before in [
        skippable(0),
        skippable(3),
        skippable(70_000),
        skippable(5).repeat(3),
    ] {
        let error = refusal(&[&before[..], &zstd(b"text\n")].concat()).expect("it is zstd data");
        assert!(
            error.contains("contains zstd data, but its name does not end in .zst"),
            "{error}"
        );
        let error =
            refusal(&[&before[..], b"\x04\x22\x4d\x18..."].concat()).expect("it is lz4 data");
        assert!(error.contains("lz4"), "{error}");
        assert_eq!(refusal(&[&before[..], b"text\n"].concat()), None);
    }
}

#[test]
fn row_jobs_reject_by_name_and_whole_files_never() {
    let file = TestFile::new("a.7z", b"7z\xbc\xaf\x27\x1c");
    assert!(FixedRecords { length: 6 }.check(&file.path).is_err());
    assert!(WholeFiles.check(&file.path).is_ok());
    assert!(
        FixedRecords { length: 6 }
            .check(&TestFile::new("rows", b"7z\xbc\xaf\x27\x1c").path)
            .is_ok()
    );
}
