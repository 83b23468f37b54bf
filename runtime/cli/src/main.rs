//! The operator's binary of napreduce: arguments in, tables and progress out.
//!
//! Owns exit statuses: 0 done, 1 it failed or a figure is not what it should be, 2 wrong usage, 128 and the signal's
//! number when interrupted. What the commands do belongs to the crates behind them.

mod lab;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Operate and examine napreduce.
#[derive(Debug, Parser)]
#[command(name = "nap", version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  nap lab speed                          wordcount and terasort of 1 GiB against what is installed
  nap lab memory --size 10GiB            do tasks keep to their memory budget?
  nap lab start                          what starting a job and a task costs

Exit status: 0 done, 1 failed, 2 wrong usage";

#[derive(Debug, Subcommand)]
enum Command {
    /// Experiments: measure napreduce on this machine
    Lab(lab::Arguments),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Lab(arguments) => lab::run(&arguments),
    }
}
