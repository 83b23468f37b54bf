//! Input from HDFS gives the same output as input from files; errors name unreadable input.

use std::io::Write;
use std::path::Path;

use napreduce_tests::{Folder, counter, joined, parts, run};

use super::server::Files;

/// Returns a text of distinct lines.
pub fn text(lines: usize) -> String {
    (0..lines)
        .map(|line| format!("line {line} of {lines} with word{}\n", line % 97))
        .collect()
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

/// The same files in a folder and in HDFS.
fn books(folder: &Folder, files: &Files) {
    folder.write("books/a.txt", text(1000));
    folder.write("books/b.txt", "to be\r\nor not to be");
    folder.write("books/empty.txt", "");
    folder.write("books/c d%20e.txt", text(10));
    folder.write("books/z.txt.gz", gzip(&text(500)));
    folder.write("books/_hidden", "hidden\n");
    folder.write("books/.hidden", "hidden\n");
    files.put_all(&folder.path("books"), "books/");
}

/// The output for HDFS and for files is byte-identical.
fn check_same(folder: &Folder, files: &Files, argument: &str, more: &[&str]) {
    let local = folder.path(argument);
    let of_folder = folder.path("of-folder");
    let of_hdfs = folder.path("of-hdfs");
    let words = |input: &str, output: &Path| {
        let output = output.to_str().expect("text");
        let fixed = [
            input,
            "--output",
            output,
            "--overwrite",
            "--quiet",
            "--reduces",
            "3",
        ];
        files.words(&[&fixed[..], more].concat()).succeeded();
    };
    words(local.to_str().expect("text"), &of_folder);
    let slash = if argument.ends_with('/') { "/" } else { "" };
    words(&(files.uri(argument) + slash), &of_hdfs);
    assert!(
        !joined(&of_folder).is_empty() && parts(&of_folder) == parts(&of_hdfs),
        "{argument} {more:?}"
    );
    for name in ["MAP_INPUT_RECORDS", "BYTES_READ", "TOTAL_LAUNCHED_MAPS"] {
        assert_eq!(
            counter(&of_folder, name),
            counter(&of_hdfs, name),
            "{name} of {argument} {more:?}"
        );
    }
    assert!(
        counter(&of_hdfs, "STORAGE_READ_BYTES") > 0
            && counter(&of_hdfs, "STORAGE_READ_REQUESTS") > 0
    );
    assert_eq!(counter(&of_hdfs, "STORAGE_READ_RETRIES"), 0);
}

#[test]
fn hdfs_splits_give_same_words_as_files() {
    let Some(files) = Files::create("cut") else {
        return;
    };
    let folder = Folder::new();
    books(&folder, &files);
    for split_size in ["64MiB", "7777", "1000"] {
        check_same(&folder, &files, "books/", &["--split-size", split_size]);
    }
    check_same(
        &folder,
        &files,
        "books/",
        &["--split-size", "1000", "--conf", "combine-files=false"],
    );
}

#[test]
fn records_across_block_boundaries_are_read() {
    let Some(files) = Files::create("blocks") else {
        return;
    };
    let folder = Folder::new();
    folder.write("long.txt", text(40_000));
    files.put("long.txt", text(40_000));
    for split_size in ["64MiB", "100001", "262144"] {
        check_same(&folder, &files, "long.txt", &["--split-size", split_size]);
    }
}

#[test]
fn hdfs_arguments_resolve_like_files() {
    let Some(files) = Files::create("arguments") else {
        return;
    };
    let folder = Folder::new();
    books(&folder, &files);
    folder.write("deep/a/b/c.txt", "c\n");
    folder.write("deep/a/d.txt", "d d\n");
    folder.write("deep/_a/d.txt", "hidden\n");
    folder.write("deep/x[1].txt", "x x x\n");
    files.put_all(&folder.path("deep"), "deep/");
    for argument in [
        "books",
        "books/a.txt",
        "books/c d%20e.txt",
        "books/*.txt",
        "books/?.*",
        "deep/a/*.txt",
        "deep/**/*.txt",
        "deep/x[1].txt",
    ] {
        check_same(&folder, &files, argument, &[]);
    }
    check_same(&folder, &files, "deep", &["--recursive"]);
    let output = folder.path("out");
    let output = output.to_str().expect("text");
    let refused = files.words(&[&files.uri("deep/a"), "--output", output]);
    refused.failed(
        2,
        &[
            "arguments/deep/a contains the directory hdfs://books/arguments/deep/a/b",
            "--recursive",
        ],
    );
    // With the address of the NameNode, and together with a local file.
    let local = folder.path("books/b.txt");
    let both = [
        &files.uri_at("books/b.txt"),
        local.to_str().expect("text"),
        "--output",
        output,
    ];
    files.words(&both).succeeded();
    assert_eq!(counter(&folder.path("out"), "MAP_INPUT_RECORDS"), 4);
}

#[test]
fn unreadable_input_is_named() {
    let Some(files) = Files::create("errors") else {
        return;
    };
    let folder = Folder::new();
    files.put("closed/a.txt", "x\n");
    files.close("closed");
    let fails = |input: &str, user: &str, says: &[&str]| {
        let mut command = files.program(env!("CARGO_BIN_EXE_stored-words"), &files.address);
        let output = folder.path("out");
        command
            .args([input, "--output", output.to_str().expect("text")])
            .env("HADOOP_USER_NAME", user);
        run(&mut command).failed(2, says);
        assert!(!output.exists(), "nothing was begun");
    };
    let own = "root";
    fails(
        "hdfs://books/errors/no/such.txt",
        own,
        &["input hdfs://books/errors/no/such.txt does not exist"],
    );
    fails(
        "hdfs://books/errors/*.txt",
        own,
        &["input hdfs://books/errors/*.txt matches no file"],
    );
    fails(
        "hdfs://",
        own,
        &["invalid object name hdfs://: expected hdfs://HOST:PORT/"],
    );
    fails("hdfs://books/errors//a", own, &["keys with //"]);
    fails(
        "hdfs://nobody/a",
        own,
        &[
            "nobody is neither HOST:PORT nor a nameservice",
            "HADOOP_CONF_DIR",
        ],
    );
    let closed = files.uri("closed/a.txt");
    fails(
        &closed,
        "stranger",
        &["access to hdfs://books/errors/closed/a.txt is denied (403 AccessControlException)"],
    );
}

#[cfg(feature = "formats")]
#[test]
fn parquet_is_read_from_hdfs() {
    let Some(files) = Files::create("tables") else {
        return;
    };
    let folder = Folder::new();
    let rows = |row: usize| format!("TXL,C{},{}\n", row % 13, row % 31);
    folder.write(
        "flights.csv",
        format!(
            "from,carrier,delay\n{}",
            (0..20_000).map(rows).collect::<String>()
        ),
    );
    let program = |path: &str, arguments: &[&str]| {
        run(files
            .program(path, &files.address)
            .current_dir(folder.root())
            .args(arguments))
        .succeeded();
    };
    program(
        env!("CARGO_BIN_EXE_to-parquet"),
        &["flights.csv", "--output", "flights", "--quiet"],
    );
    files.put_all(&folder.path("flights"), "flights/");
    let delays = env!("CARGO_BIN_EXE_delays");
    program(
        delays,
        &[
            "flights",
            "--output",
            "of-files",
            "--reduces",
            "1",
            "--quiet",
        ],
    );
    let cut = files.uri("flights/part-*");
    program(
        delays,
        &[
            &cut,
            "--output",
            "cut",
            "--reduces",
            "1",
            "--split-size",
            "2000",
            "--quiet",
        ],
    );
    let expected = parts(&folder.path("of-files"));
    assert!(expected.iter().any(|(_, bytes)| bytes.len() > 100));
    assert!(parts(&folder.path("cut")) == expected);
}
