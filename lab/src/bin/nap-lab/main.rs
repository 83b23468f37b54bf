//! `nap-lab`, which `nap lab` runs: experiments that measure napreduce on this machine.
//!
//! Owns what this binary is: the command line, or the job program, the bare sort or the guard of an
//! experiment when it is called so. Does not own the experiments (`napreduce_lab`).

mod arguments;
mod experiments;
mod fuzz;
mod paper;
mod place;
mod replay;

use std::process::ExitCode;

use clap::Parser;
use napreduce_live::printing::{finish, printed};

/// Measure napreduce on this machine
#[derive(Debug, Parser)]
#[command(name = "nap lab", bin_name = "nap lab", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    experiment: arguments::Experiment,
}

fn main() -> ExitCode {
    if napreduce_lab::job_program_requested() {
        return napreduce_lab::job_program(napreduce::Program::new());
    }
    if napreduce_lab::bare_sort_requested() {
        return napreduce_lab::bare_sort_program();
    }
    if napreduce_lab::guard_requested() {
        return napreduce_lab::guard_program();
    }
    let status = match Arguments::try_parse() {
        Ok(Arguments { experiment }) => experiments::run(&experiment),
        Err(refused) => {
            let result = refused.print();
            if !refused.use_stderr() {
                printed(result);
            }
            ExitCode::from(u8::try_from(refused.exit_code()).unwrap_or(1))
        }
    };
    finish("nap lab", status)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_makes_sense() {
        Arguments::command().debug_assert();
    }
}
