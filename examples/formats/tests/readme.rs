//! Runs the commands of `examples/formats/README.md` and compares their output with the page.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const README: &str = include_str!("../README.md");

/// Returns the first fenced block of a language after a heading.
fn block<'a>(heading: &str, language: &str) -> &'a str {
    let section = README
        .split(&format!("\n## {heading}\n"))
        .nth(1)
        .expect("a heading of the page");
    let behind = section
        .split(&format!("```{language}\n"))
        .nth(1)
        .expect("a block of the section");
    behind.split("```").next().expect("the end of the block")
}

/// Runs the commands of a section in a folder of this name, and compares the output.
fn prints_what_is_written_under(heading: &str, name: &str) {
    let folder: PathBuf =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let programs = Path::new(env!("CARGO_BIN_EXE_to-parquet"))
        .parent()
        .expect("a program lies in a folder");
    let mut shell = Command::new("sh");
    shell
        .args(["-e", "-c", block(heading, "sh")])
        .current_dir(&folder)
        .env("programs", programs);
    shell
        .env_remove("NAPREDUCE_CLUSTER")
        .env_remove("NAPREDUCE_DIR");
    let ended = shell.output().expect("there is a shell");
    let told = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{heading}: {told}");
    assert_eq!(
        String::from_utf8_lossy(&ended.stdout),
        block(heading, "text"),
        "{heading}: {told}"
    );
    fs::remove_dir_all(&folder).expect("the folder was made by this test");
}

#[test]
fn csv_round_trips_through_parquet() {
    prints_what_is_written_under("csv to Parquet, and Parquet to csv", "flights");
}

#[test]
fn visits_are_joined_with_users() {
    prints_what_is_written_under("JSON lines, joined", "visits");
}
