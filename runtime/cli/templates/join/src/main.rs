//! Joins orders with their users. `cargo run -- --help` lists all options.

use std::process::ExitCode;

use napreduce::Program;

fn main() -> ExitCode {
    Program::new()
        .about("Adds the name of its user (ID,NAME) to each order (ID,AMOUNT)")
        .main({{crate_name}}::join)
}
