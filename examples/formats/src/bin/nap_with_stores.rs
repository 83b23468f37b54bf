//! `nap` with the features of stores, for tests of clusters that read and write them.
//!
//! Owns nothing but its name, by which it lies beside a `nap` without stores that was built for all
//! other tests.

use std::process::ExitCode;

fn main() -> ExitCode {
    napreduce_cli::main()
}
