//! Counts the words of text files. `cargo run -- --help` lists all options.

use std::process::ExitCode;

use napreduce::Program;

fn main() -> ExitCode {
    Program::new()
        .about("Counts the words of text files")
        .main({{crate_name}}::wordcount)
}
