//! Help, version and usage errors of the examples. Cargo builds the programs for this test.

use std::process::{Command, Output};

const PROGRAMS: [(&str, &str); 10] = [
    ("wordcount", env!("CARGO_BIN_EXE_wordcount")),
    ("terasort", env!("CARGO_BIN_EXE_terasort")),
    ("secondary-sort", env!("CARGO_BIN_EXE_secondary-sort")),
    ("join-orders", env!("CARGO_BIN_EXE_join-orders")),
    ("top-words", env!("CARGO_BIN_EXE_top-words")),
    ("kmeans", env!("CARGO_BIN_EXE_kmeans")),
    ("sessions", env!("CARGO_BIN_EXE_sessions")),
    ("balance", env!("CARGO_BIN_EXE_balance")),
    ("slow-count", env!("CARGO_BIN_EXE_slow-count")),
    ("levels", env!("CARGO_BIN_EXE_levels")),
];

fn run(path: &str, arguments: &[&str]) -> Output {
    Command::new(path)
        .args(arguments)
        .output()
        .expect("the program runs")
}

#[test]
fn help_shows_purpose_examples_and_settings() {
    for (name, path) in PROGRAMS {
        let help = run(path, &["--help"]);
        let text = String::from_utf8_lossy(&help.stdout);
        assert!(help.status.success(), "{name}");
        for part in [
            "Examples:\n",
            &format!("  {name} "),
            "--task-memory",
            "64MiB",
            "Settings for --conf:",
        ] {
            assert!(text.contains(part), "{name} --help lacks {part:?}:\n{text}");
        }
        assert!(
            !text.starts_with("The flags of"),
            "{name} says what it is for:\n{text}"
        );
    }
}

#[test]
fn version_names_the_protocols() {
    for (name, path) in PROGRAMS {
        for flag in ["--version", "-V"] {
            let printed = run(path, &[flag]);
            let text = String::from_utf8_lossy(&printed.stdout);
            assert!(printed.status.success(), "{name}");
            let begins = format!(
                "{name} (napreduce {}, network protocol ",
                env!("CARGO_PKG_VERSION")
            );
            assert!(
                text.starts_with(&begins) && text.contains(", task protocol "),
                "{text}"
            );
        }
    }
}

#[test]
fn invalid_arguments_exit_with_status_2() {
    for (name, path) in PROGRAMS {
        let wrong = run(path, &["in", "--output", "out", "--faster"]);
        assert_eq!(wrong.status.code(), Some(2), "{name}");
        assert!(
            String::from_utf8_lossy(&wrong.stderr).contains("--faster"),
            "{name}"
        );
    }
    let nowhere = run(
        env!("CARGO_BIN_EXE_kmeans"),
        &["in", "--output", "out", "--centre", "here"],
    );
    assert_eq!(nowhere.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&nowhere.stderr).contains("expected two integers X,Y"));
}

#[test]
fn terasort_keeps_format_for_its_rows() {
    let help = run(PROGRAMS[1].1, &["--help"]);
    let text = String::from_utf8_lossy(&help.stdout);
    assert!(
        text.contains("ascii") && text.contains("--report-format"),
        "{text}"
    );
}
