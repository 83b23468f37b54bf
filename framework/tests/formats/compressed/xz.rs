//! Xz: blocks of several streams, padding and memory limits.

use super::*;

fn xz(content: &[u8], arguments: &[&str]) -> Option<Vec<u8>> {
    filtered("xz", &[&["-c"], arguments].concat(), content, "xz-utils")
}

#[test]
fn every_cut_gives_each_line_once() {
    let content = content(800);
    let Some(compressed) = xz(&content, &["--block-size=2000"]) else {
        return;
    };
    let file = TestFile::new("a.xz", &compressed);
    let sizes = (1..100).step_by(7).chain([333, 1000, 5003, file.size - 1]);
    assert!(same_at_every_cut(&ByteLines, &file, sizes, show) == lines_of(&content));

    let parts = [&b"one\ntw"[..], b"", b"o\n", b"three"]
        .map(|part| xz(part, &["-C", "crc32"]).expect("xz"));
    let padded = parts.join(&[0; 8][..]);
    let file = TestFile::new("a.xz", &padded);
    assert_eq!(
        same_at_every_cut(&ByteLines, &file, 1..=file.size, show),
        ["one", "two", "three"]
    );
    is_preemption_safe("xz", &compressed, 3000);
}

#[test]
fn single_block_file_is_read_by_one_task() {
    let Some(compressed) = xz(b"one\n", &["-9", "-C", "sha256"]) else {
        return;
    };
    let file = TestFile::new("a.xz", &compressed);
    assert!(matches!(
        ByteLines.splitting(&file.path),
        Splitting::Compressed(_)
    ));
    let error = read(&ByteLines, &file.whole(), false, show)
        .expect_err("xz -9 looks back 64 MiB")
        .to_string();
    assert!(
        error.ends_with(" needs 64MiB to be decompressed; raise --task-memory"),
        "{error}"
    );
    read_whole("a.xz", &xz(b"", &[]).expect("xz"), b"");
    read_whole(
        "a.xz",
        &xz(&content(50_000), &["-6", "-C", "none"]).expect("xz"),
        &content(50_000),
    );
}

#[test]
fn damage_is_detected() {
    let (Some(first), Some(second)) = (xz(b"one\ntwo\n", &["-0"]), xz(b"three\n", &["-0"])) else {
        return;
    };
    let both = [&first[..], &second].concat();
    let found = damage("a.xz", &both, b"one\ntwo\nthree\n", &[first.len()]);
    assert!(
        found > both.len() * 7,
        "only {found} of {} flips were found",
        both.len() * 8
    );
}

#[test]
fn xz_trailing_data_is_rejected_with_offset() {
    let (Some(first), Some(second)) = (xz(b"one\n", &["-0"]), xz(b"two\n", &["-0"])) else {
        return;
    };
    let said = |bytes: Vec<u8>| {
        let file = TestFile::new("a.xz", bytes);
        read(&ByteLines, &file.whole(), false, show)
            .expect_err("it is not xz data alone")
            .to_string()
    };
    let large = vec![b'x'; 300_000];
    for behind in 1..4 {
        let error = said([&first[..], &vec![0; behind]].concat());
        assert!(
            error.ends_with(&format!("(no stream there, and {behind} bytes follow)")),
            "{error}"
        );
    }
    for other in [&b"x"[..], b"a line\n", &[0xff; 5000], &large] {
        for padding in [0, 4, 400] {
            let error = said([&first[..], &vec![0; padding], other].concat());
            let expected = format!(
                "xz data at byte {} is not valid (no stream there, and {} bytes follow)",
                first.len() + padding,
                other.len()
            );
            assert!(error.ends_with(&expected), "{error} instead of {expected}");
        }
        let error = said([&first[..], other, &second].concat());
        assert!(error.contains("is not valid ("), "{error}");
    }
    for cut in 1..second.len() {
        let error = said([&first[..], &[0; 8], &second[..cut]].concat());
        assert!(
            error.ends_with("ends early; the file is incomplete"),
            "cut at byte {cut}: {error}"
        );
    }
}
