//! Bzip2: cuts inside blocks, and false block marks.

use super::*;
use ::bzip2::{Compression, write::BzEncoder};
use proptest::prelude::*;
use std::io::Write;

fn bzip2(content: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = BzEncoder::new(Vec::new(), Compression::new(level));
    encoder.write_all(content).expect("a Vec takes every write");
    encoder.finish().expect("a Vec takes every write")
}

#[test]
fn every_cut_gives_each_line_once() {
    let content = content(12_000);
    let compressed = bzip2(&content, 1);
    let file = TestFile::new("a.bz2", &compressed);
    let sizes = [
        1000,
        7001,
        30_000,
        50_001,
        99_999,
        file.size / 2,
        file.size - 1,
    ];
    let lines = same_at_every_cut(&ByteLines, &file, sizes, show);
    assert!(lines == lines_of(&content));
}

#[test]
fn every_cut_of_small_and_empty_file_works() {
    for content in [&b""[..], b"\n", b"one\ntwo", b"one\n\nthree\n"] {
        let file = TestFile::new("a.bz2", bzip2(content, 9));
        let lines = same_at_every_cut(&ByteLines, &file, 1..=file.size, show);
        assert_eq!(lines, lines_of(content));
    }
    let empty = bzip2(b"", 9);
    let all = [
        &empty[..],
        &bzip2(b"one\ntw", 9),
        &empty,
        &bzip2(b"o\nthree", 1),
        &empty,
    ]
    .concat();
    let file = TestFile::new("a.bz2", all);
    assert_eq!(
        same_at_every_cut(&ByteLines, &file, 1..=file.size, show),
        ["one", "two", "three"]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn blocks_may_end_inside_lines(
        streams in proptest::collection::vec("[a\n]{0,3}", 1..8), size in 1..60u64,
    ) {
        let all: Vec<u8> = streams.iter().flat_map(|stream| bzip2(stream.as_bytes(), 1)).collect();
        let file = TestFile::new("a.bz2", all);
        let lines = same_at_every_cut(&ByteLines, &file, [size], show);
        prop_assert_eq!(lines, lines_of(streams.concat().as_bytes()));
    }
}

#[test]
fn damage_is_detected() {
    let first = bzip2(b"one\ntwo\n", 9);
    let second = bzip2(b"three\n", 1);
    let both = [&first[..], &second].concat();
    let found = damage("a.bz2", &both, b"one\ntwo\nthree\n", &[first.len()]);
    assert!(
        found > both.len() * 6,
        "only {found} of {} flips were found",
        both.len() * 8
    );
    read_whole(
        "a.bz2",
        &[&both[..], b"garbage"].concat(),
        b"one\ntwo\nthree\n",
    );
}

#[test]
fn false_block_mark_is_read_as_data() {
    // Random bits contain no block mark, so one is placed between two streams, where only a search finds it.
    let first = bzip2(&content(9000), 1);
    let second = bzip2(&content(50), 1);
    let mark = [0x31, 0x41, 0x59, 0x26, 0x53, 0x59];
    let file = TestFile::new("a.bz2", [&first[..], &mark, &second].concat());
    let split = Split {
        offset: first.len() as u64 - 3,
        length: 9,
        ..file.whole()
    };
    let lines = read(
        &ByteLines,
        &Split {
            path: file.path.clone(),
            ..split
        },
        false,
        show,
    );
    assert_eq!(lines.expect("there is no block in it"), [""; 0]);
}

#[test]
fn bzip2_streams_after_garbage_are_rejected() {
    let first = bzip2(&content(9000), 1);
    let second = bzip2(&content(9000), 1);
    for garbage in [&b"x"[..], &[b'y'; 400_000]] {
        let file = TestFile::new("a.bz2", [&first[..], garbage, &second].concat());
        for size in [9_000, 50_001, file.size] {
            let pieces = file.pieces(size);
            let read = pieces
                .iter()
                .map(|piece| read(&ByteLines, piece, false, show));
            let read = read
                .map(|lines| lines.map(|lines| lines.len()))
                .collect::<Result<Vec<_>, _>>();
            let error = read.expect_err("lines would be left out").to_string();
            let expected = format!(
                "at byte {} is not valid (no stream there, but blocks follow)",
                first.len()
            );
            assert!(error.ends_with(&expected), "{error}");
        }
    }
}

#[test]
fn split_tasks_are_preemption_safe() {
    is_preemption_safe("bz2", &bzip2(&content(12_000), 1), 60_000);
}

#[test]
fn command_line_tool_output_is_read() {
    let content = content(60_000);
    if let Some(compressed) = filtered("bzip2", &["-c", "-2"], &content, "bzip2") {
        let file = TestFile::new("a.bz2", &compressed);
        assert!(
            same_at_every_cut(&ByteLines, &file, [100_000, 333_333], show) == lines_of(&content)
        );
    }
}
