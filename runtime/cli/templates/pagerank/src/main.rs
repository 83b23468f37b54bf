//! Ranks pages by the links to them. `cargo run -- --help` lists all options.

use std::process::ExitCode;

use napreduce::Program;

fn main() -> ExitCode {
    Program::new()
        .about("Ranks pages by the links to them, from lines FROM TO")
        .drive({{crate_name}}::drive)
}
