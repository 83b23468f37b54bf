//! Snappy: frames and Hadoop's blocks.

use super::*;
use std::io::Write;

fn frames(content: &[u8]) -> Vec<u8> {
    let mut encoder = snap::write::FrameEncoder::new(Vec::new());
    encoder.write_all(content).expect("a Vec takes every write");
    encoder.into_inner().expect("a Vec takes every write")
}

fn raw(content: &[u8]) -> Vec<u8> {
    snap::raw::Encoder::new()
        .compress_vec(content)
        .expect("it is short")
}

#[test]
fn snappy_frames_are_read_and_damage_is_detected() {
    let all = content(20_000);
    read_whole("a.sz", &frames(&all), &all);
    read_whole(
        "a.snappy",
        &[frames(&all), frames(&all)].concat(),
        &[&all[..], &all].concat(),
    );
    let content = b"one one one one one one one one one one\ntwo\n";
    let compressed = frames(content);
    let found = damage("a.snappy", &compressed, content, &[10]);
    assert!(
        found > compressed.len() * 7,
        "only {found} of {} flips were found",
        compressed.len() * 8
    );
    is_preemption_safe("snappy", &compressed, 10);
    for garbage in [&b"x"[..], b"a line\n"] {
        let file = TestFile::new("a.sz", [&compressed[..], garbage].concat());
        let error = read(&ByteLines, &file.whole(), false, show)
            .expect_err("no chunk begins so")
            .to_string();
        let expected = format!(
            "snappy data at byte {} is not valid (no chunk there)",
            compressed.len()
        );
        assert!(error.ends_with(&expected), "{error}");
    }
}

#[test]
fn hadoop_blocks_are_read() {
    let content = content(500);
    read_whole("a.snappy", &hadoop(&content, raw), &content);
    let small = hadoop(b"one\ntwo\n", raw);
    cut_anywhere("a.snappy", &small, b"one\ntwo\n", &[]);
}

#[test]
fn pyarrow_hadoop_snappy_is_read() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    fs::write(folder.path().join("lines"), content(3000)).expect("a written file");
    let script = r#"
import pyarrow, struct
data = open("lines", "rb").read()
codec = pyarrow.Codec("snappy")
with open("theirs.snappy", "wb") as out:
    for at in range(0, len(data), 50000):
        block = data[at:at + 50000]
        packed = codec.compress(block, asbytes=True)
        out.write(struct.pack(">II", len(block), len(packed)) + packed)
"#;
    if python(&["pyarrow"], script, folder.path()).is_some() {
        let compressed = fs::read(folder.path().join("theirs.snappy")).expect("Python wrote it");
        read_whole("a.snappy", &compressed, &content(3000));
    }
}

#[test]
fn text_named_snappy_is_rejected() {
    other_data_is_no_block("a.snappy", raw);
}
