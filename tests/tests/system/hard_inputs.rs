//! Unusual input files: each gives the correct result or an error that names the file.

use std::io::Write;
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;
use napreduce_tests::{Ended, Folder, counter, joined, program, run, sorted_lines};

/// Runs a job of `testjobs` over `input`, relative to the folder, into `out`.
fn job(folder: &Folder, name: &str, input: &str, more: &[&str]) -> Ended {
    let mut command = program("testjobs");
    command
        .current_dir(folder.root())
        .args(["--job", name, "--output", "out", "--quiet"])
        .args(more)
        .arg(input);
    run(&mut command)
}

fn wordcount(folder: &Folder, input: &str, more: &[&str]) -> Ended {
    let mut command = program("wordcount");
    command
        .current_dir(folder.root())
        .args(["--output", "out", "--quiet"])
        .args(more)
        .arg(input);
    run(&mut command)
}

fn output(folder: &Folder) -> String {
    String::from_utf8(sorted_lines(&joined(&folder.path("out")))).expect("text output")
}

#[test]
fn empty_file_gives_empty_parts() {
    let folder = Folder::new();
    folder.write("empty", "");
    wordcount(&folder, "empty", &["--reduces", "3"]).succeeded();
    assert_eq!(output(&folder), "");
    assert!(folder.has("out/_SUCCESS") && folder.has("out/part-r-00002"));
}

#[test]
fn empty_directory_gives_empty_parts() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("nothing")).expect("a directory");
    wordcount(&folder, "nothing", &["--reduces", "1"]).succeeded();
    assert_eq!(output(&folder), "");
}

#[test]
fn last_line_without_newline_is_read() {
    let folder = Folder::new();
    folder.write("text", "one two\ntwo");
    wordcount(&folder, "text", &[]).succeeded();
    assert_eq!(output(&folder), "one\t1\ntwo\t2\n");
}

#[test]
fn carriage_return_before_newline_is_stripped() {
    let folder = Folder::new();
    folder.write("text", "a b\r\n\r\nb\r\n");
    job(&folder, "lines-as-keys", "text", &[]).succeeded();
    let lengths: Vec<String> = output(&folder)
        .lines()
        .map(|line| line.split('\t').skip(1).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(lengths, ["0 1", "3 1", "1 1"]);
}

#[test]
fn nul_bytes_are_kept() {
    let folder = Folder::new();
    folder.write("bytes", b"a\0b a\0b \0 a\n");
    job(&folder, "words-of-bytes", "bytes", &[]).succeeded();
    assert_eq!(output(&folder), "\0\t1\na\0b\t2\na\t1\n");
}

#[test]
fn invalid_utf8_fails_text_job_but_not_bytes_job() {
    let folder = Folder::new();
    folder.write("bytes", b"fine\nnot \xff fine\n");
    wordcount(&folder, "bytes", &[])
        .failed(1, &["bytes has invalid UTF-8 at byte 9", "is not retried"]);
    assert!(
        !folder.has("out"),
        "a failed job leaves no output directory"
    );
    job(&folder, "words-of-bytes", "bytes", &[]).succeeded();
    assert_eq!(
        joined(&folder.path("out"))
            .iter()
            .filter(|byte| **byte == 0xff)
            .count(),
        1
    );
}

#[test]
fn line_of_200_megabytes_is_one_record() {
    let folder = Folder::new();
    let mut line = vec![b'x'; 200 << 20];
    line.extend_from_slice(b"\nshort\n");
    folder.write("long", &line);
    job(&folder, "one-key", "long", &["--task-memory", "512MiB"]).succeeded();
    assert_eq!(output(&folder), format!("key\t2\t{}\n", (200 << 20) + 5));
}

#[test]
fn line_longer_than_task_memory_is_refused() {
    let folder = Folder::new();
    folder.write("long", vec![b'x'; 40 << 20]);
    job(&folder, "one-key", "long", &["--task-memory", "16MiB"]).failed(
        1,
        &[
            "line at byte 0 of long is longer than",
            "raise --task-memory",
        ],
    );
}

#[test]
fn thousand_tiny_files_are_combined_into_eight_maps() {
    let folder = Folder::new();
    for number in 0..1000 {
        folder.write(
            &format!("many/{number:04}"),
            format!("word{} all\n", number % 10),
        );
    }
    folder.write("many/_skipped", "never\n");
    folder.write("many/.skipped", "never\n");
    let expected: String = (0..10)
        .map(|number| format!("word{number}\t100\n"))
        .collect();
    for (combine, maps) in [("true", 8), ("false", 1000)] {
        let combine = format!("combine-files={combine}");
        wordcount(&folder, "many", &["--conf", &combine, "--overwrite"]).succeeded();
        assert_eq!(output(&folder), format!("all\t1000\n{expected}"));
        assert_eq!(counter(&folder.path("out"), "TOTAL_LAUNCHED_MAPS"), maps);
    }
}

#[test]
fn globs_and_several_inputs_are_read_together() {
    let folder = Folder::new();
    folder.write("logs/a.log", "x\n");
    folder.write("logs/b.log", "y\n");
    folder.write("logs/c.txt", "z\n");
    folder.write("more", "x\n");
    wordcount(&folder, "logs/*.log", &["more"]).succeeded();
    assert_eq!(output(&folder), "x\t2\ny\t1\n");
}

#[test]
fn nested_directory_needs_recursive_flag() {
    let folder = Folder::new();
    folder.write("logs/2024/a.log", "x\n");
    folder.write("logs/2025/01/b.log", "y\n");
    folder.write("logs/_old/c.log", "z\n");
    let says = [
        "logs contains the directory logs/2024; pass",
        "--recursive",
        "'logs/**/*.*'",
    ];
    wordcount(&folder, "logs", &[]).failed(2, &says);
    folder.write("logs/d.log", "x\n");
    wordcount(&folder, "logs", &[]).failed(2, &says);
    assert!(!folder.has("out"));
    std::os::unix::fs::symlink("..", folder.path("logs/2024/up")).expect("a link");
    wordcount(&folder, "logs", &["--recursive"]).succeeded();
    assert_eq!(output(&folder), "x\t2\ny\t1\n");
    wordcount(&folder, "logs/**/*.log", &["--overwrite"]).succeeded();
    assert_eq!(output(&folder), "x\t2\ny\t1\n");
}

#[test]
fn file_named_several_times_is_read_once() {
    let folder = Folder::new();
    folder.write("in/one.txt", "x\n");
    folder.write("in/two.txt", "y\n");
    std::fs::hard_link(folder.path("in/one.txt"), folder.path("in/hard.txt")).expect("a link");
    std::os::unix::fs::symlink("two.txt", folder.path("in/soft.txt")).expect("a link");
    wordcount(
        &folder,
        "in/one.txt",
        &["./in/one.txt", "in", "in/*.txt", "in/../in/two.txt"],
    )
    .succeeded();
    assert_eq!(output(&folder), "x\t1\ny\t1\n");
}

#[test]
fn unsupported_compression_is_refused_by_name() {
    let folder = Folder::new();
    folder.write("text.bz2", "it does not matter what is in it\n");
    folder.write("logs/a", b"\xfd7zXZ\0 and so on");
    let refusal = "is compressed with bzip2, which is not supported; decompress it first: bunzip2 -k text.bz2";
    wordcount(&folder, "text.bz2", &[]).failed(2, &["text.bz2 ", refusal]);
    job(&folder, "words-of-bytes", "logs", &[])
        .failed(2, &["logs/a is compressed with xz", "unxz -k logs/a"]);
    assert!(!folder.has("out"));
}

#[test]
fn missing_input_is_named_and_leaves_nothing() {
    let folder = Folder::new();
    wordcount(&folder, "data/x", &[]).failed(2, &["data/x does not exist"]);
    wordcount(&folder, "data/*.log", &[]).failed(2, &["data/*.log matches no file"]);
    assert!(!folder.has("out"));
}

#[test]
fn unreadable_input_is_named_with_reason() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let input = folder.write("locked", "text\n");
    std::fs::set_permissions(&input, std::fs::Permissions::from_mode(0o000))
        .expect("permissions can be set");
    let plain = program("wordcount");
    // Root can read everything, unless it drops that privilege.
    let root = rustix::process::geteuid().is_root();
    if root && Command::new("setpriv").arg("--version").output().is_err() {
        println!("skipped: root reads everything, and there is no setpriv to give that up with");
        return;
    }
    let mut command = if root {
        let mut command = Command::new("setpriv");
        command
            .args(["--bounding-set", "-all", "--inh-caps", "-all"])
            .arg(plain.get_program());
        command
    } else {
        plain
    };
    command
        .current_dir(folder.root())
        .args(["locked", "--output", "out"]);
    run(&mut command).failed(2, &["cannot read locked: permission denied"]);
}

#[test]
fn gzip_input_is_one_map_over_all_members() {
    let folder = Folder::new();
    let mut packed = Vec::new();
    for text in ["one two\n", "two three\n"] {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).expect("memory takes it");
        packed.extend(encoder.finish().expect("memory takes it"));
    }
    folder.write("text.gz", &packed);
    let mut command = program("wordcount");
    command
        .current_dir(folder.root())
        .args(["text.gz", "--output", "out", "--split-size", "16"]);
    let ended = run(&mut command).succeeded();
    assert!(
        ended
            .stderr
            .contains("text.gz is compressed with gzip and cannot be split"),
        "{}",
        ended.stderr
    );
    assert_eq!(output(&folder), "one\t1\nthree\t1\ntwo\t2\n");
    assert_eq!(counter(&folder.path("out"), "TOTAL_LAUNCHED_MAPS"), 1);
}

#[test]
fn trailing_gzip_zeros_are_padding_and_garbage_warns() {
    let folder = Folder::new();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(b"one two\n").expect("memory takes it");
    let packed = encoder.finish().expect("memory takes it");
    for (behind, is_told) in [(&[0; 512][..], false), (b"garbage", true)] {
        folder.write("text.gz", [&packed[..], behind].concat());
        let mut command = program("wordcount");
        command
            .current_dir(folder.root())
            .args(["text.gz", "--output", "out", "--overwrite"]);
        let ended = run(&mut command).succeeded();
        assert_eq!(output(&folder), "one\t1\ntwo\t1\n");
        let told = format!(
            "text.gz: ignored trailing garbage: 7 bytes after the gzip data, from byte {}",
            packed.len()
        );
        assert_eq!(
            ended.stderr.matches(&told).count(),
            usize::from(is_told),
            "{}",
            ended.stderr
        );
    }
}

#[test]
fn truncated_gzip_is_reported_as_damaged() {
    let folder = Folder::new();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder
        .write_all("some words in a file\n".repeat(100).as_bytes())
        .expect("memory takes it");
    let packed = encoder.finish().expect("memory takes it");
    folder.write("text.gz", &packed[..packed.len() / 2]);
    wordcount(&folder, "text.gz", &[]).failed(1, &["text.gz is damaged: gzip data"]);
}

#[test]
fn partial_fixed_record_is_refused() {
    let folder = Folder::new();
    folder.write("rows", vec![b'x'; 250]);
    let mut command = program("terasort");
    command
        .current_dir(folder.root())
        .args(["rows", "--output", "out", "--format", "hadoop"]);
    run(&mut command).failed(
        2,
        &[
            "rows has 250 bytes",
            "not a multiple of the record length 100",
        ],
    );
}
