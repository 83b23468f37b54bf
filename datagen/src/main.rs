//! The `datagen` program: generators and validators of standard data sets on the command line.

mod cli;

use cli::print_error;
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
