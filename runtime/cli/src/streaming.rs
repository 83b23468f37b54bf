//! `nap streaming`: commands as mapper and reducer of a job.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Args, ValueHint};
use napreduce::{Program, streaming};
use napreduce_protocol::printing::print_error;

const ABOUT: &str = "\
Runs commands as mapper and reducer, by sh -c, one process for each attempt. The mapper reads lines and writes lines of key TAB \
value, which are sorted by key; the reducer reads those lines and writes the output.";

const EXAMPLES: &str = "\
nap streaming --input books --output counts --mapper \"tr -cs a-zA-Z '\\n'\" --reducer 'cut -f 1 | uniq -c'
nap streaming --input logs --output counts --mapper ./map.py --combiner ./sum.py --reducer ./sum.py
nap streaming --input logs --output errors --mapper 'grep -a ERROR || true'
nap streaming --input logs --output out --mapper './map.py --fast'
nap streaming --input logs --output out --mapper 'python3 map.py' --files map.py,stop.txt --cluster DIR";

const WRONG_USAGE: u8 = 2;

/// Run a job with commands as mapper and reducer; see nap streaming --help
#[derive(Debug, Clone, Args)]
#[command(disable_help_flag = true)]
pub struct Arguments {
    /// Options of a streaming job
    #[arg(value_name = "OPTIONS", trailing_var_arg = true, allow_hyphen_values = true, value_hint = ValueHint::AnyPath)]
    _rest: Vec<OsString>,
}

/// Runs the job of the arguments after `nap streaming`.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let program = Program::new().about(ABOUT).examples(EXAMPLES);
    streaming::main(program.called("nap streaming", arguments))
}

/// Reports options before a command that takes the options of a job, where they would have no effect.
pub fn misplaced(name: &str) -> ExitCode {
    print_error(format_args!(
        "nap: options must follow `nap {name}`, and --cluster names the cluster; see: nap {name} --help"
    ));
    ExitCode::from(WRONG_USAGE)
}
