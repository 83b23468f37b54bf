//! `nap lab`: experiments, in a separate program that this one executes.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::Args;
use napreduce_protocol::printing::print_error;

const PROGRAM: &str = "nap-lab";
const FAILED: u8 = 1;

/// Experiments: measure napreduce on this machine
#[derive(Debug, Clone, Args)]
#[command(disable_help_flag = true)]
pub struct Arguments {
    /// An experiment and its options; nap lab --help lists them
    #[arg(value_name = "EXPERIMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<OsString>,
}

/// Becomes the program beside this one, or the one that is found in PATH; returns only when that cannot be.
pub fn run(arguments: &Arguments) -> ExitCode {
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name(PROGRAM));
    let program = beside.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from(PROGRAM));
    let error = Command::new(&program).args(&arguments.rest).exec();
    print_error(format_args!(
        "nap: cannot run {}: {error}; build it with `cargo build --release -p napreduce-lab` and put it beside nap",
        program.display()
    ));
    ExitCode::from(FAILED)
}
