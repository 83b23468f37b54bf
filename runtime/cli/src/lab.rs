//! `nap lab`: experiments, in a separate program that this one executes.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::Args;
use napreduce_protocol::printing::print_error;

const PROGRAM: &str = "nap-lab";
const FAILED: u8 = 1;

/// Run experiments and benchmarks; see nap lab --help
#[derive(Debug, Clone, Args)]
#[command(disable_help_flag = true)]
pub struct Arguments {
    /// Experiment and its options
    #[arg(
        value_name = "EXPERIMENT",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    rest: Vec<OsString>,
}

/// Executes `nap-lab` next to this program, or from PATH; returns only on failure.
pub fn run(arguments: &Arguments) -> ExitCode {
    let sibling = std::env::current_exe()
        .ok()
        .map(|own| own.with_file_name(PROGRAM));
    let program = sibling
        .filter(|path| path.is_file())
        .unwrap_or_else(|| PathBuf::from(PROGRAM));
    let error = Command::new(&program).args(&arguments.rest).exec();
    print_error(format_args!(
        "nap: cannot run {}: {error}; build it with `cargo build --release -p napreduce-lab` and put it next to nap",
        program.display()
    ));
    ExitCode::from(FAILED)
}
