//! The `datagen` program: exit status, standard output, standard error and signals.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn datagen(directory: &Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_datagen"))
        .args(arguments.split(' '))
        .current_dir(directory)
        .output()
        .unwrap()
}

/// Runs in `directory` and checks the exit status; returns standard output and standard error.
fn check(directory: &Path, arguments: &str, status: i32) -> (String, String) {
    let output = datagen(directory, arguments);
    let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert_eq!(
        output.status.code(),
        Some(status),
        "datagen {arguments}\n{out}\n{err}"
    );
    (out, err)
}

#[test]
fn tera_records_have_the_published_checksum() {
    let root = tempfile::tempdir().unwrap();
    for (format, checksum) in [
        ("ascii", "1f5dfb3631a"),
        ("hadoop", "1f9ffe645ec"),
        ("gensort", "1ea6370b955"),
    ] {
        let (out, err) = check(
            root.path(),
            &format!("tera --records 1k --format {format} --output {format}"),
            0,
        );
        assert_eq!(out, "");
        assert!(
            err.starts_with(&format!(
                "{format}: 1,000 {format} records, 100.00 kB in 1 file,"
            )),
            "{err}"
        );
        let (out, err) = check(
            root.path(),
            &format!("validate {format} --format {format}"),
            1,
        );
        assert!(out.contains("records     1000\n"), "{out}");
        assert!(out.contains(&format!("checksum    {checksum}\n")), "{out}");
        assert!(
            out.contains(&format!("(first: {format}/part-00000, record ")),
            "{out}"
        );
        assert_eq!(err, "");
    }
}

#[test]
fn validate_prints_order_and_key() {
    let root = tempfile::tempdir().unwrap();
    check(
        root.path(),
        "tera --records 1 --format hadoop --output one --quiet",
        0,
    );
    let (out, _) = check(root.path(), "validate one", 0);
    assert!(out.contains("unordered   0\n"), "{out}");
    assert!(
        out.contains("first key   4a696d47726179524950  JimGrayRIP\n"),
        "{out}"
    );
    let (out, _) = check(root.path(), "validate one --json", 0);
    let expected = "{\"checksum\":\"CHECKSUM\",\"duplicates\":0,\"files\":1,\"first_key\":\"4a696d47726179524950\",\
                    \"first_unordered\":null,\"last_key\":\"4a696d47726179524950\",\"records\":1,\"unordered\":0}\n";
    let checksum = crc32fast::hash(&fs::read(root.path().join("one/part-00000")).unwrap());
    assert_eq!(out, expected.replace("CHECKSUM", &format!("{checksum:x}")));
}

#[test]
fn text_has_the_requested_size() {
    let root = tempfile::tempdir().unwrap();
    let (out, err) = check(
        root.path(),
        "text --bytes 10KiB --vocabulary 1k --files 2 --output words",
        0,
    );
    assert_eq!(out, "");
    assert!(
        err.starts_with("words: text of 1,000 words, 10.24 kB in 2 files,"),
        "{err}"
    );
    let sizes: u64 = ["part-00000", "part-00001"]
        .map(|name| {
            fs::metadata(root.path().join("words").join(name))
                .unwrap()
                .len()
        })
        .iter()
        .sum();
    assert_eq!(sizes, 10 * 1024);
}

#[test]
fn suite_commands_write_their_files() {
    let root = tempfile::tempdir().unwrap();
    let (_, err) = check(
        root.path(),
        "movies --movies 100 --raters 1k --files 2 --output movies",
        0,
    );
    assert!(
        err.starts_with("movies: movies of 1,000 raters, ") && err.contains(" in 2 files"),
        "{err}"
    );
    let (_, err) = check(
        root.path(),
        "centroids movies --clusters 6 --output centroids.txt",
        0,
    );
    assert_eq!(err, "centroids.txt: 6 centroids\n");
    assert_eq!(
        fs::read_to_string(root.path().join("centroids.txt"))
            .unwrap()
            .lines()
            .count(),
        6
    );
    let (_, err) = check(root.path(), "centroids movies --output centroids.txt", 2);
    assert_eq!(
        err,
        "datagen: centroids.txt exists; pass --overwrite or choose another file\n"
    );
    check(root.path(), "centroids nowhere --output other.txt", 2);
    check(
        root.path(),
        "text --bytes 1k --vocabulary 9 --documents 3 --output books --quiet",
        0,
    );
    assert!(root.path().join("books/document-00002.txt").exists());
    check(
        root.path(),
        "graph --bytes 1k --vertices 1k --output edges --quiet",
        0,
    );
    assert!(
        fs::metadata(root.path().join("edges/part-00000"))
            .unwrap()
            .len()
            >= 1000
    );
    let (_, err) = check(
        root.path(),
        "associations --records 10 --items 2 --output few",
        2,
    );
    assert_eq!(
        err,
        "datagen: invalid number of items: 2; choose 4 to 4294967295\n"
    );
    let (_, err) = check(root.path(), "graph --edges 1 --bytes 1 --output edges", 2);
    assert!(err.contains("cannot be used with"), "{err}");
}

#[test]
fn quiet_prints_nothing() {
    let root = tempfile::tempdir().unwrap();
    let printed = check(
        root.path(),
        "text --bytes 10 --vocabulary 2 --output words --quiet",
        0,
    );
    assert_eq!(printed, (String::new(), String::new()));
}

#[test]
fn invalid_arguments_or_input_exit_with_2() {
    let root = tempfile::tempdir().unwrap();
    let (_, err) = check(root.path(), "validate nowhere", 2);
    assert!(
        err.starts_with("datagen: cannot read nowhere: No such file"),
        "{err}"
    );
    check(root.path(), "tera --records 1 --output out", 0);
    let (_, err) = check(root.path(), "tera --records 1 --output out", 2);
    assert_eq!(
        err,
        "datagen: output directory out exists; pass --overwrite or choose another\n"
    );
    check(root.path(), "tera --records 2 --output out --overwrite", 0);
    assert_eq!(
        fs::metadata(root.path().join("out/part-00000"))
            .unwrap()
            .len(),
        200
    );
    let (_, err) = check(root.path(), "tera --records 1000000T --output huge", 2);
    assert!(err.contains("too many records"), "{err}");
    let (_, err) = check(root.path(), "tera --records 1 --output out --sorted", 2);
    assert!(err.contains("--sorted"), "{err}");
}

#[test]
fn help_texts_have_examples() {
    let root = tempfile::tempdir().unwrap();
    for arguments in [
        "",
        "tera ",
        "text ",
        "movies ",
        "centroids ",
        "associations ",
        "graph ",
        "validate ",
    ] {
        let (out, _) = check(root.path(), &format!("{arguments}--help"), 0);
        assert!(out.contains("Examples:\n  datagen "), "{arguments}: {out}");
    }
}

/// A file size limit replaces a full disk: the same call fails in the same way.
#[test]
fn write_error_names_and_removes_the_file() {
    let root = tempfile::tempdir().unwrap();
    let script = format!(
        "trap '' XFSZ; ulimit -f 1000; exec {} tera --records 100k --output out",
        env!("CARGO_BIN_EXE_datagen")
    );
    let output = Command::new("bash")
        .args(["-c", &script])
        .current_dir(root.path())
        .output()
        .unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(
        err.starts_with("datagen: cannot write out/part-00000: File too large"),
        "{err}"
    );
    assert!(!root.path().join("out").exists());
}

#[test]
fn interrupted_run_removes_its_files() {
    let root = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_datagen"))
        .args(["tera", "--records", "1G", "--output", "out"])
        .current_dir(root.path())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The signal handlers are installed before the first file appears.
    while !root.path().join("out/.part-00000.partial").exists() {
        assert!(
            child.try_wait().unwrap().is_none(),
            "datagen ended before the signal"
        );
        std::thread::yield_now();
    }
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{err}");
    assert!(
        err.ends_with("datagen: interrupted; output directory out is unchanged\n"),
        "{err}"
    );
    assert!(!root.path().join("out").exists());
}
