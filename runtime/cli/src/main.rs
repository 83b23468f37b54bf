//! The program `nap`.
//!
//! Owns nothing but its start: all it does is in the library beside it, so that tests can build `nap` with
//! other features under another name.

use std::process::ExitCode;

fn main() -> ExitCode {
    napreduce_cli::main()
}
