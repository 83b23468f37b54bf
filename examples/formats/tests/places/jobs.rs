//! Input from a store gives the same output as input from files.

use std::io::Write;
use std::path::Path;

use napreduce_tests::{Folder, counter, joined, parts};

use super::server::{Bucket, Server, on_each_server};

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

/// The same files in a folder and in a bucket.
fn books(folder: &Folder, bucket: &Bucket) {
    folder.write("books/a.txt", text(1000));
    folder.write("books/b.txt", "to be\r\nor not to be");
    folder.write("books/empty.txt", "");
    folder.write("books/c d%20e.txt", text(10));
    folder.write("books/z.txt.gz", gzip(&text(500)));
    folder.write("books/_hidden", "hidden\n");
    folder.write("books/.hidden", "hidden\n");
    bucket.put_all(&folder.path("books"), "books/");
}

/// The output for objects and for files is byte-identical.
fn check_same(folder: &Folder, bucket: &Bucket, argument: &str, more: &[&str]) {
    let local = folder.path(argument);
    let files = folder.path("of-files");
    let objects = folder.path("of-objects");
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
        bucket.words(&[&fixed[..], more].concat()).succeeded();
    };
    words(local.to_str().expect("text"), &files);
    words(&bucket.uri(argument), &objects);
    assert!(
        !joined(&files).is_empty() && parts(&files) == parts(&objects),
        "{argument} {more:?}"
    );
    for name in ["MAP_INPUT_RECORDS", "BYTES_READ", "TOTAL_LAUNCHED_MAPS"] {
        assert_eq!(
            counter(&files, name),
            counter(&objects, name),
            "{name} of {argument} {more:?}"
        );
    }
    assert_eq!(counter(&files, "STORAGE_READ_REQUESTS"), 0);
    assert!(
        counter(&objects, "STORAGE_READ_BYTES") > 0
            && counter(&objects, "STORAGE_READ_REQUESTS") > 0
    );
}

fn object_splits_give_same_words_as_files(server: Server) {
    let Some(bucket) = Bucket::create(server, "cut") else {
        return;
    };
    let folder = Folder::new();
    books(&folder, &bucket);
    for split_size in ["64MiB", "7777", "1000"] {
        check_same(&folder, &bucket, "books/", &["--split-size", split_size]);
    }
    check_same(
        &folder,
        &bucket,
        "books/",
        &["--split-size", "1000", "--conf", "combine-files=false"],
    );
}

fn object_arguments_resolve_like_files(server: Server) {
    let Some(bucket) = Bucket::create(server, "arguments") else {
        return;
    };
    let folder = Folder::new();
    books(&folder, &bucket);
    folder.write("deep/a/b/c.txt", "c\n");
    folder.write("deep/a/d.txt", "d d\n");
    folder.write("deep/_a/d.txt", "hidden\n");
    folder.write("deep/x[1].txt", "x x x\n");
    bucket.put_all(&folder.path("deep"), "deep/");
    for argument in [
        "books",
        "books/",
        "books/a.txt",
        "books/c d%20e.txt",
        "books/*.txt",
        "books/?.*",
        "deep/a/*.txt",
        "deep/**/*.txt",
        "deep/x[1].txt",
    ] {
        check_same(&folder, &bucket, argument, &[]);
    }
    check_same(&folder, &bucket, "deep", &["--recursive"]);
    let output = folder.path("out");
    let refused = bucket.words(&[
        &bucket.uri("deep/a"),
        "--output",
        output.to_str().expect("text"),
    ]);
    let deep = bucket.uri("deep/a");
    refused.failed(
        2,
        &[
            &format!("{deep} contains the directory {deep}/b"),
            "--recursive",
        ],
    );
    let local = folder.path("books/b.txt");
    let both = [
        &bucket.uri("books/b.txt"),
        local.to_str().expect("text"),
        "--output",
        output.to_str().expect("text"),
    ];
    bucket.words(&both).succeeded();
    assert_eq!(counter(&output, "MAP_INPUT_RECORDS"), 4);
}

on_each_server! {
    object_splits_give_same_words_as_files,
    object_arguments_resolve_like_files,
}
