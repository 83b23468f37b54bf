//! `nap frames`: a program in Python, or in any language that speaks frames, as a job.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;
use napreduce::Program;
use napreduce::streaming::frames;

const ABOUT: &str = "\
A program in Python, or in any language that speaks frames, as mapper and reducer. There is one process for each attempt, which is \
suspended and checkpointed as any task. Programs of the module napreduce call this by themselves: python wordcount.py books --output \
counts.";

const EXAMPLES: &str = "\
nap frames --program wordcount.py books --output counts
nap frames --program wordcount.py books --output counts --parameter least=2 --reduces 4
nap frames --program wordcount.py --python venv/bin/python books --output counts
nap frames --program wordcount.py books --output counts --files stop.txt --cluster DIR
nap frames --program ./wordcount --python '' books --output counts";

/// Run a job that is a program in Python or speaks frames; nap frames --help has its options
#[derive(Debug, Clone, Args)]
#[command(disable_help_flag = true)]
pub struct Arguments {
    /// Those of a job program: INPUT..., --output, --program, --python, --parameter, --reduces, --cluster
    /// and more
    #[arg(value_name = "OPTIONS", trailing_var_arg = true, allow_hyphen_values = true)]
    _rest: Vec<OsString>,
}

/// Runs the job of these arguments, which follow `nap frames`.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    frames::main(Program::new().about(ABOUT).examples(EXAMPLES).called("nap frames", arguments))
}
