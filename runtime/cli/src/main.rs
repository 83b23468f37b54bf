//! The program `nap`. Its code is in the library, so that tests can build it with other features under another
//! name.

use std::process::ExitCode;

fn main() -> ExitCode {
    napreduce_cli::main()
}
