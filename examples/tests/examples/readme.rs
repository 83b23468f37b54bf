//! Runs the commands of `examples/README.md` and compares their output with the page.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const README: &str = include_str!("../../README.md");

/// Returns the folder of the compiled programs.
fn programs() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_wordcount"))
        .parent()
        .expect("a program is in a folder")
}

/// Returns the first fenced block of a language after a heading.
fn block<'a>(heading: &str, language: &str) -> &'a str {
    let section = README
        .split(&format!("\n## {heading}\n"))
        .nth(1)
        .expect("a heading of the page");
    let section = section.split("\n## ").next().expect("a section");
    let behind = section
        .split(&format!("```{language}\n"))
        .nth(1)
        .expect("a block of the section");
    behind.split("```").next().expect("the end of the block")
}

/// Creates an empty folder, which is removed if the test succeeds.
fn folder(heading: &str) -> PathBuf {
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{heading}-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Runs the commands of a section, and compares the output.
fn prints_what_is_written_under(heading: &str) {
    let folder = folder(heading);
    let mut shell = Command::new("sh");
    shell
        .args(["-e", "-c", block(heading, "sh")])
        .current_dir(&folder);
    shell
        .env("programs", programs())
        .env("examples", env!("CARGO_MANIFEST_DIR"));
    shell
        .env_remove("NAPREDUCE_CLUSTER")
        .env_remove("NAPREDUCE_DIR");
    let ended = shell.output().expect("there is a shell");
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{heading}: {errors}");
    assert_eq!(
        String::from_utf8_lossy(&ended.stdout),
        block(heading, "text"),
        "{heading}: {errors}"
    );
    fs::remove_dir_all(&folder).expect("the folder was made by this test");
}

#[test]
fn wordcount_counts_each_word() {
    prints_what_is_written_under("wordcount");
}

#[test]
fn terasort_sorts_rows_by_their_first_bytes() {
    prints_what_is_written_under("terasort");
}

#[test]
fn secondary_sort_orders_readings_by_date() {
    prints_what_is_written_under("secondary-sort");
}

#[test]
fn join_orders_names_user_of_each_order() {
    prints_what_is_written_under("join-orders");
}

#[test]
fn top_words_writes_only_most_frequent_words() {
    prints_what_is_written_under("top-words");
}

#[test]
fn balance_carries_over_between_days() {
    prints_what_is_written_under("balance");
}

#[test]
fn slow_count_counts_each_word() {
    prints_what_is_written_under("slow-count");
}

#[test]
fn levels_sorts_lines_into_several_outputs() {
    prints_what_is_written_under("levels");
}

#[test]
fn kmeans_iterates_until_centres_are_stable() {
    prints_what_is_written_under("kmeans");
}

#[test]
fn sessions_end_at_long_pause() {
    prints_what_is_written_under("sessions");
}

#[test]
fn python_wordcount_equals_rust_wordcount() {
    let python = Command::new("python3")
        .arg("--version")
        .output()
        .is_ok_and(|ended| ended.status.success());
    let missing = match (python, programs().join("nap").exists()) {
        (true, true) => None,
        (false, _) => Some("there is no python3"),
        (true, false) => {
            Some("there is no program nap next to wordcount: cargo build -p napreduce-cli")
        }
    };
    if let Some(why) = missing {
        let required = std::env::var("NAPREDUCE_REQUIRE").unwrap_or_default();
        assert!(
            !required.split(',').any(|one| one == "python"),
            "streaming cannot be tested: {why}"
        );
        eprintln!("skipped: mapper and reducer in Python: {why}");
        return;
    }
    prints_what_is_written_under("streaming");
    assert_eq!(block("streaming", "text"), block("wordcount", "text"));
}

#[test]
fn readme_covers_every_program() {
    for file in
        fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin")).expect("the programs")
    {
        let path = file.expect("a program").path();
        let name = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .replace('_', "-");
        assert!(
            README.contains(&format!("| [{name}](#{name}) |")),
            "the table lacks {name}"
        );
        assert!(
            README.contains(&format!("\n## {name}\n")),
            "no section is about {name}"
        );
    }
}
