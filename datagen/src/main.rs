//! The `datagen` program: generators and validators of the standard data sets on the command line.
//!
//! Owns the exit status and the one line that says what went wrong. Everything else is in `cli` and the
//! library.

mod cli;

use cli::printing::print_error;
use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::run() {
        Ok(code) => code,
        Err(failure) => {
            print_error(format_args!("datagen: {failure}"));
            failure.exit_code()
        }
    }
}
