//! Ranks pages by the links to them. `cargo run -- --help` lists all options.

use std::process::ExitCode;

use {{crate_name}}::{drive, program};

fn main() -> ExitCode {
    program()
        .about("Ranks pages by the links to them, from lines FROM TO")
        .drive(drive)
}
