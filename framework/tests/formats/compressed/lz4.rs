//! Lz4: frames of all kinds and Hadoop's blocks.

use super::*;

#[test]
fn command_line_tool_output_is_read() {
    let content = content(20_000);
    for arguments in [
        &["-c"][..],
        &["-c", "-BD", "-B4"],
        &["-c", "-9", "-BX", "--content-size"],
        &["-c", "--no-frame-crc"],
    ] {
        let Some(compressed) = filtered("lz4", arguments, &content, "lz4") else {
            return;
        };
        read_whole("a.lz4", &compressed, &content);
        let skipped = b"\x50\x2a\x4d\x18\x03\0\0\0abc";
        let twice = [skipped, &compressed[..], skipped, &compressed].concat();
        read_whole("a.lz4", &twice, &[&content[..], &content].concat());
    }
    let legacy = filtered("lz4", &["-c", "-l"], b"one\n", "lz4").expect("it was there");
    let file = TestFile::new("a.lz4", legacy);
    let error = read(&ByteLines, &file.whole(), false, show)
        .expect_err("it is refused")
        .to_string();
    assert!(
        error.ends_with(
            "byte 0 is in lz4's legacy format, which has no end mark; compress it with a current lz4"
        ),
        "{error}"
    );
}

#[test]
fn damage_is_detected() {
    let content = b"one one one one one one\ntwo\n";
    let Some(frame) = filtered("lz4", &["-c", "-BX"], content, "lz4") else {
        return;
    };
    let both = [&frame[..], &frame].concat();
    let found = damage("a.lz4", &both, &content.repeat(2), &[frame.len()]);
    assert!(
        found > both.len() * 7,
        "only {found} of {} flips were found",
        both.len() * 8
    );
    is_preemption_safe("lz4", &both, 10);
}

#[test]
fn hadoop_blocks_are_read() {
    let content = content(500);
    let compressed = hadoop(&content, lz4_flex::block::compress);
    read_whole("a.lz4", &compressed, &content);
    read_whole("a.lz4", &[&compressed[..], &[0; 4]].concat(), &content);
    let small = hadoop(b"one\ntwo\n", lz4_flex::block::compress);
    cut_anywhere("a.lz4", &small, b"one\ntwo\n", &[]);
    if let Some(frame) = filtered("lz4", &["-c"], b"one\n", "lz4") {
        let file = TestFile::new("a.lz4", [&frame[..], b"x"].concat());
        let error = read(&ByteLines, &file.whole(), false, show)
            .expect_err("x is no frame")
            .to_string();
        assert!(error.ends_with("is not valid (no frame there)"), "{error}");
    }
}

#[test]
fn text_named_lz4_is_rejected() {
    other_data_is_no_block("a.lz4", lz4_flex::block::compress);
}
