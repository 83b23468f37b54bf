//! The job of which both sides are commands, given on a command line.
//!
//! Owns the parameters of `nap streaming` and the job they make. Does not own the other arguments (`program`).

use std::process::ExitCode;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde::{Deserialize, Serialize};

use super::mapper::CommandMapper;
use super::part::CommandPart;
use super::reducer::CommandReducer;
use super::taken_along::{take_along, tell_of_others};
use crate::builder::Job;
use crate::program::{Driver, Program};

/// The name of the job in programs that have it.
const NAME: &str = "streaming";

/// Means no reducer, as in Hadoop.
const NONE: &str = "NONE";

/// The commands of a job.
#[derive(Debug, Clone, Args, Serialize, Deserialize)]
pub struct Commands {
    /// Reads lines, writes lines of key TAB value; run by sh -c, once for each map. A file that it begins with, such as
    /// ./map.py, is taken along
    #[arg(long, value_name = "CMD", value_parser = NonEmptyStringValueParser::new())]
    pub mapper: String,

    /// Reads lines of key TAB value in order, writes the output; without one, or NONE, the mapper does
    #[arg(long, value_name = "CMD", value_parser = NonEmptyStringValueParser::new())]
    pub reducer: Option<String>,
}

/// The job of these commands: text in, text out.
pub fn job(commands: &Commands) -> Job {
    match commands.reducer.as_deref().filter(|reducer| *reducer != NONE) {
        Some(reducer) => {
            Job::bytes().mapper(CommandMapper::new(&commands.mapper)).reducer(CommandReducer::new(reducer))
        }
        None => map_only(&commands.mapper),
    }
}

/// A job without reduce: what the command writes of a split is a part file.
pub fn map_only(command: impl Into<String>) -> Job {
    Job::bytes().part_map(CommandPart::new(command.into()))
}

/// Adds the job to a program under the name `streaming`, to be called with [`Commands`].
pub fn add_to(program: Program) -> Program {
    program.job(NAME, job)
}

/// The `main` of a program, or of a subcommand, whose commands come from the command line, as do its inputs: `--input`.
#[must_use = "the exit status says whether the job succeeded; return it from `main`"]
pub fn main(program: Program) -> ExitCode {
    add_to(program).inputs_by_name().drive(|driver: &mut Driver<'_>, commands: &Commands| {
        let Commands { mapper, reducer } = commands;
        let mapper = take_along(driver, "--mapper", mapper)?;
        let reducer =
            reducer.as_deref().map(|reducer| take_along(driver, "--reducer", reducer)).transpose()?;
        tell_of_others(driver, "--mapper", &mapper);
        if let Some(reducer) = &reducer {
            tell_of_others(driver, "--reducer", reducer);
        }
        driver.job(NAME).parameters(&Commands { mapper, reducer }).run().map(drop)
    })
}
