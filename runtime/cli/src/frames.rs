//! `nap frames`: a program in Python, or in any language that speaks frames, as a job.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Args, ValueHint};
use napreduce::Program;
use napreduce::streaming::frames;

const ABOUT: &str = "\
Runs a program in Python, or in any language that implements frames, as mapper and reducer. Each attempt is one process, which can \
be suspended and checkpointed. Programs of the Python module napreduce call this themselves: python wordcount.py books --output \
counts";

const EXAMPLES: &str = "\
nap frames --program wordcount.py books --output counts
nap frames --program wordcount.py books --output counts --parameter least=2 --reduces 4
nap frames --program wordcount.py --python venv/bin/python books --output counts
nap frames --program wordcount.py books --output counts --files stop.txt --cluster DIR
nap frames --program ./wordcount --python '' books --output counts";

/// Run a job written in Python or with frames; see nap frames --help
#[derive(Debug, Clone, Args)]
#[command(disable_help_flag = true)]
pub struct Arguments {
    /// Options of a frames job
    #[arg(value_name = "OPTIONS", trailing_var_arg = true, allow_hyphen_values = true, value_hint = ValueHint::AnyPath)]
    _rest: Vec<OsString>,
}

/// Runs the job of the arguments after `nap frames`.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    frames::main(
        Program::new()
            .about(ABOUT)
            .examples(EXAMPLES)
            .called("nap frames", arguments),
    )
}
