//! `nap streaming`: commands as mapper and reducer of a job.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;
use napreduce::{Program, streaming};
use napreduce_protocol::printing::print_error;

const ABOUT: &str = "\
Any program as mapper and reducer. Both are commands for sh -c, one process for each attempt: the mapper reads lines and writes \
lines of key TAB value, which are sorted by key; the reducer reads those lines and writes the output. Inputs are files, \
directories or globs.";

const EXAMPLES: &str = "\
nap streaming --input books --output counts --mapper \"tr -cs a-zA-Z '\\n'\" --reducer 'cut -f 1 | uniq -c'
nap streaming --input logs --output counts --mapper ./map.py --combiner ./sum.py --reducer ./sum.py
nap streaming --input logs --output errors --mapper 'grep -a ERROR || true'
nap streaming --input logs --output out --mapper './map.py --fast'
nap streaming --input logs --output out --mapper 'python3 map.py' --files map.py,stop.txt --cluster DIR";

const WRONG_USAGE: u8 = 2;

/// Run a job whose mapper and reducer are commands; nap streaming --help has its options
#[derive(Debug, Clone, Args)]
#[command(disable_help_flag = true)]
pub struct Arguments {
    /// Those of a job program: --input, --output, --mapper, --combiner, --reducer, --key-fields,
    /// --reduces, --cluster and more
    #[arg(value_name = "OPTIONS", trailing_var_arg = true, allow_hyphen_values = true)]
    _rest: Vec<OsString>,
}

/// Runs the job of these arguments, which follow `nap streaming`.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    run_as("nap streaming", arguments)
}

/// Runs the job of these arguments, which another command of this name was given in other words.
pub fn run_as(name: &str, arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let program = Program::new().about(ABOUT).examples(EXAMPLES);
    streaming::main(program.called(name, arguments))
}

/// Something stands before a command of that name whose options are those of a job, which would be without
/// effect.
pub fn misplaced(name: &str) -> ExitCode {
    print_error(format_args!(
        "nap: options of a job stand after `nap {name}`, and its cluster is named with --cluster; see: nap {name} --help"
    ));
    ExitCode::from(WRONG_USAGE)
}
