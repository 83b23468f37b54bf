//! Runs of simulated clusters.

use std::process::Command;

/// Runs the program; returns what it printed.
fn nap_world(arguments: &[&str]) -> String {
    let ran = Command::new(env!("CARGO_BIN_EXE_nap-world"))
        .args(arguments)
        .output()
        .expect("the program runs");
    let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{printed}{errors}");
    printed
}

/// No oracle is violated, and each seed gives the same log twice.
#[test]
fn seeds_are_repeatable_and_keep_all_promises() {
    let printed = nap_world(&["--seed", "1", "--runs", "40"]);
    assert_eq!(printed.trim(), "40 seeds, 0 failed");
}

#[test]
fn log_ends_with_requested_event() {
    let whole = nap_world(&["--seed", "3"]);
    let begun = nap_world(&["--seed", "3", "--until", "40"]);
    let events: Vec<&str> = begun.lines().take(40).collect();
    assert_eq!(events, whole.lines().take(40).collect::<Vec<_>>());
    assert!(begun.contains("seed 3: 40 events"), "{begun}");
}
