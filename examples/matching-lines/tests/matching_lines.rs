//! `matching-lines`: output as in `examples/README.md`, help and usage errors.

use std::process::{Command, Output};
use std::{env, fs};

const README: &str = include_str!("../../README.md");
const PROGRAM: &str = env!("CARGO_BIN_EXE_matching-lines");

/// Returns the first fenced block of a language in the section of this example.
fn block(language: &str) -> &'static str {
    let section = README
        .split("\n## matching-lines\n")
        .nth(1)
        .expect("the page has a section");
    let block = section
        .split(&format!("```{language}\n"))
        .nth(1)
        .expect("the section has a block");
    block.split("```").next().expect("the block ends")
}

fn run(arguments: &[&str]) -> Output {
    Command::new(PROGRAM)
        .args(arguments)
        .output()
        .expect("the program runs")
}

#[test]
fn readme_commands_print_the_lines_shown() {
    let folder = env::temp_dir().join(format!("matching-lines-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a scratch directory");
    let programs = std::path::Path::new(PROGRAM)
        .parent()
        .expect("the program lies in a directory");
    let mut shell = Command::new("sh");
    shell
        .args(["-e", "-c", block("sh")])
        .current_dir(&folder)
        .env("programs", programs);
    shell
        .env_remove("NAPREDUCE_CLUSTER")
        .env_remove("NAPREDUCE_DIR");
    let output = shell.output().expect("sh runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        block("text"),
        "{errors}"
    );
    fs::remove_dir_all(&folder).expect("the scratch directory can be removed");
}

#[test]
fn help_shows_examples_and_settings() {
    let help = run(&["--help"]);
    let text = String::from_utf8_lossy(&help.stdout);
    assert!(help.status.success());
    for part in [
        "Examples:\n",
        "  matching-lines ",
        "--pattern",
        "Settings for --conf:",
    ] {
        assert!(text.contains(part), "--help lacks {part:?}:\n{text}");
    }
}

#[test]
fn version_names_the_protocols() {
    let version = run(&["--version"]);
    let text = String::from_utf8_lossy(&version.stdout);
    let begin = format!(
        "matching-lines (napreduce {}, network protocol ",
        env!("CARGO_PKG_VERSION")
    );
    assert!(
        version.status.success() && text.starts_with(&begin),
        "{text}"
    );
}

#[test]
fn invalid_arguments_have_status_2() {
    let unknown = run(&["in", "--output", "out", "--faster"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("--faster"));
    let pattern = run(&["in", "--output", "out", "--pattern", "(open"]);
    assert_eq!(pattern.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&pattern.stderr).contains("unclosed group"));
}
