//! Compares the texts that users read (help and messages) with snapshots. A changed text is a changed file in
//! `snapshots`; `INSTA_UPDATE=always cargo test -p napreduce-tests --test messages` accepts it.

mod help;
mod mistakes;

use std::process::Command;

use insta::Settings;
use napreduce_tests::program;

/// Compares a text with the snapshot of this name.
fn assert_snapshot(name: &str, text: &str) {
    let mut settings = Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

/// Returns a program as run on a terminal of 80 columns, without settings in the environment.
fn in_80_columns(name: &str) -> Command {
    let mut command = program(name);
    for (variable, _) in std::env::vars_os() {
        if variable.as_encoded_bytes().starts_with(b"NAPREDUCE_") {
            command.env_remove(variable);
        }
    }
    command.env("COLUMNS", "80");
    command
}
