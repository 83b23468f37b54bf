//! `nap` with the store features, for tests of clusters. The name keeps it apart from a `nap` without stores.

use std::process::ExitCode;

fn main() -> ExitCode {
    napreduce_cli::main()
}
