//! Command lines of the suite's programs: folders of documents, side files, groups of matches, usage errors.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const PROGRAMS: [(&str, &str); 11] = [
    ("adjacency-list", env!("CARGO_BIN_EXE_adjacency-list")),
    ("classification", env!("CARGO_BIN_EXE_classification")),
    ("count-matches", env!("CARGO_BIN_EXE_count-matches")),
    ("histogram-movies", env!("CARGO_BIN_EXE_histogram-movies")),
    ("histogram-ratings", env!("CARGO_BIN_EXE_histogram-ratings")),
    ("inverted-index", env!("CARGO_BIN_EXE_inverted-index")),
    ("kmeans-movies", env!("CARGO_BIN_EXE_kmeans-movies")),
    (
        "ranked-inverted-index",
        env!("CARGO_BIN_EXE_ranked-inverted-index"),
    ),
    ("self-join", env!("CARGO_BIN_EXE_self-join")),
    ("sequence-count", env!("CARGO_BIN_EXE_sequence-count")),
    ("term-vector", env!("CARGO_BIN_EXE_term-vector")),
];

fn run(folder: &Path, program: &str, arguments: &str) -> Output {
    let mut command = Command::new(program);
    command.args(arguments.split(' ')).current_dir(folder);
    command
        .env_remove("NAPREDUCE_CLUSTER")
        .env_remove("NAPREDUCE_DIR")
        .output()
        .unwrap()
}

/// Checks the single part file of a run.
fn check(folder: &Path, program: &str, arguments: &str, expected: &str) {
    let ended = run(
        folder,
        program,
        &format!("{arguments} --output out --overwrite --reduces 1"),
    );
    assert!(
        ended.status.success(),
        "{program} {arguments}: {}",
        String::from_utf8_lossy(&ended.stderr)
    );
    assert_eq!(
        fs::read_to_string(folder.join("out/part-r-00000")).unwrap(),
        expected,
        "{program} {arguments}"
    );
}

fn check_fails(folder: &Path, program: &str, arguments: &str, status: i32, expected: &str) {
    let ended = run(folder, program, &format!("{arguments} --output never"));
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(
        ended.status.code(),
        Some(status),
        "{program} {arguments}: {said}"
    );
    assert!(said.contains(expected), "{program} {arguments}: {said}");
}

#[test]
fn documents_of_one_name_are_one_document() {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("a/x.txt", "one two three\n"),
        ("b/x.txt", "one two three\n"),
        ("b/y.txt", "one"),
    ] {
        let path = root.path().join("books").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let books = "books --recursive";
    let index = "one\tx.txt\none\ty.txt\nthree\tx.txt\ntwo\tx.txt\n";
    check(
        root.path(),
        env!("CARGO_BIN_EXE_inverted-index"),
        books,
        index,
    );
    check(
        root.path(),
        env!("CARGO_BIN_EXE_sequence-count"),
        books,
        "one|two|three|x.txt\t2\n",
    );
    check(root.path(), env!("CARGO_BIN_EXE_term-vector"), books, "");
}

#[test]
fn ambiguous_document_name_is_an_error() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("a|b"), "one two three\n").unwrap();
    let refused = "the file name of";
    check_fails(
        root.path(),
        env!("CARGO_BIN_EXE_sequence-count"),
        "a|b",
        1,
        refused,
    );
}

#[test]
fn centroids_come_as_a_side_file() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("movies"), "7:1_4,2_1\n8:1_2,2_5\n").unwrap();
    fs::write(
        root.path().join("first.txt"),
        "0 0 30 2 1_5,2_1\n1 0 20 2 1_1,2_5\n",
    )
    .unwrap();
    let classification = env!("CARGO_BIN_EXE_classification");
    let kmeans = env!("CARGO_BIN_EXE_kmeans-movies");
    let with_centroids = "movies --files first.txt#centroids";
    check(root.path(), classification, with_centroids, "0\t7\n1\t8\n");
    let ended = run(
        root.path(),
        kmeans,
        &format!("{with_centroids} --output out --overwrite --reduces 1"),
    );
    assert!(
        ended.status.success(),
        "{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    // The lines without a tab are the centroids of the next step.
    let output = fs::read_to_string(root.path().join("out/part-r-00000")).unwrap();
    let next: Vec<&str> = output.lines().filter(|line| !line.contains('\t')).collect();
    fs::write(root.path().join("second.txt"), next.join("\n")).unwrap();
    check(
        root.path(),
        classification,
        "movies --files second.txt#centroids",
        "0\t7\n1\t8\n",
    );
    for program in [classification, kmeans] {
        check_fails(
            root.path(),
            program,
            "movies",
            1,
            "pass --files PATH#centroids",
        );
    }
}

#[test]
fn matches_are_counted_by_group() {
    let root = tempfile::tempdir().unwrap();
    fs::write(
        root.path().join("log"),
        "status=404 status=200\nstatus=404\nstatus=500\nnothing\n",
    )
    .unwrap();
    let program = env!("CARGO_BIN_EXE_count-matches");
    check(
        root.path(),
        program,
        "log --pattern status=([0-9]+) --group 1",
        "2\t404\n1\t200\n1\t500\n",
    );
    check(root.path(), program, "log -e [a-z]+=404", "2\tstatus=404\n");
    check(root.path(), program, "log -e absent", "");
    check_fails(
        root.path(),
        program,
        "log -e (a) --group 2",
        2,
        "the pattern has no group 2; choose 0 to 1",
    );
    check_fails(root.path(), program, "log -e (a", 2, "unclosed group");
}

#[test]
fn every_program_has_help() {
    let root = tempfile::tempdir().unwrap();
    for (name, program) in PROGRAMS {
        let help = run(root.path(), program, "--help");
        let text = String::from_utf8_lossy(&help.stdout);
        assert!(
            help.status.success() && text.contains(&format!("Examples:\n  {name} ")),
            "{name}: {text}"
        );
        check_fails(root.path(), program, "in --faster", 2, "--faster");
    }
}
