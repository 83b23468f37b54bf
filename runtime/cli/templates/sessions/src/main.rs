//! Finds sessions in a log of visits. `cargo run -- --help` lists all options.

use std::process::ExitCode;

use napreduce::Program;

fn main() -> ExitCode {
    Program::new()
        .about("Finds the sessions in a log of visits, from lines USER,SECOND")
        .main({{crate_name}}::sessions)
}
