//! The job of which both sides are commands, given on a command line.
//!
//! Owns the parameters of `nap streaming` and the job they make. Does not own the other arguments
//! (`program`).

use std::num::NonZeroU32;
use std::process::ExitCode;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::lines::first_fields;
use super::mapper::CommandMapper;
use super::part::CommandPart;
use super::reducer::CommandReducer;
use super::taken_along::{take_along, tell_of_others};
use crate::builder::Job;
use crate::output::Text;
use crate::program::{Driver, Error, Program};

/// The name of the job in programs that have it.
const NAME: &str = "streaming";

/// Means no reducer, as in Hadoop.
const NONE: &str = "NONE";

/// The commands of a job.
///
/// ```
/// use napreduce::streaming::{Commands, job};
///
/// let commands = Commands { reducer: Some("uniq -c".to_owned()), ..Commands::mapper("tr -s ' ' '\\n'") };
/// let words = job(&commands);
/// # let _ = words;
/// ```
#[derive(Debug, Clone, Args, Serialize, Deserialize)]
pub struct Commands {
    /// Reads lines, writes lines of key TAB value; run by sh -c, once for each map. A file that it begins
    /// with, such as ./map.py, is taken along
    #[arg(long, value_name = "CMD", value_parser = NonEmptyStringValueParser::new())]
    pub mapper: String,

    /// Reads what the mapper of one map task wrote, in order of the keys, and writes fewer lines of
    /// the same kind
    #[arg(long, value_name = "CMD", value_parser = NonEmptyStringValueParser::new())]
    #[serde(default)]
    pub combiner: Option<String>,

    /// Reads lines of key TAB value in order, writes the output; without one, or NONE, the mapper does
    #[arg(long, value_name = "CMD", value_parser = NonEmptyStringValueParser::new())]
    pub reducer: Option<String>,

    /// So many fields of a line, divided by TABs, are its key
    #[arg(long, value_name = "N", default_value = "1")]
    #[serde(default = "one")]
    pub key_fields: NonZeroU32,

    /// Lines whose keys have the same first N fields go to the same reduce, in order of the whole key; all of
    /// the key unless said
    #[arg(long, value_name = "N")]
    #[serde(default)]
    pub partition_fields: Option<NonZeroU32>,
}

impl Commands {
    /// A mapper alone, with keys of one field.
    ///
    /// ```
    /// use napreduce::streaming::{Commands, job};
    ///
    /// let errors = job(&Commands::mapper("grep ERROR || true"));
    /// # let _ = errors;
    /// ```
    pub fn mapper(mapper: impl Into<String>) -> Commands {
        let mapper = mapper.into();
        Commands { mapper, combiner: None, reducer: None, key_fields: one(), partition_fields: None }
    }

    /// The command that is the reducer, if there is one.
    fn command_of_reduce(&self) -> Option<&str> {
        self.reducer.as_deref().filter(|reducer| *reducer != NONE)
    }

    /// What is said and would be without effect.
    fn check(&self) -> Result<(), String> {
        if self.command_of_reduce().is_none() {
            let needless = [
                ("a --combiner", self.combiner.is_some()),
                ("--key-fields", self.key_fields != one()),
                ("--partition-fields", self.partition_fields.is_some()),
            ];
            if let Some((needless, _)) = needless.into_iter().find(|(_, is_said)| *is_said) {
                return Err(format!("{needless} needs a --reducer; without one, leave it out"));
            }
        }
        match self.partition_fields {
            Some(fields) if fields > self.key_fields => Err(format!(
                "--partition-fields {fields}: a key has {} of them; raise --key-fields",
                self.key_fields
            )),
            _ => Ok(()),
        }
    }
}

fn one() -> NonZeroU32 {
    NonZeroU32::MIN
}

/// The job of these commands: text in, text out.
///
/// ```
/// use napreduce::streaming::{Commands, job};
///
/// let lines = job(&Commands { reducer: Some("cut -f 1".to_owned()), ..Commands::mapper("cat") });
/// # let _ = lines;
/// ```
pub fn job(commands: &Commands) -> Job {
    let Some(reducer) = commands.command_of_reduce() else { return map_only(&commands.mapper) };
    let mapper = match &commands.combiner {
        Some(combiner) => combined(&commands.mapper, combiner, commands.key_fields),
        None => commands.mapper.clone(),
    };
    let mapped = Job::bytes().mapper(CommandMapper::new(mapper).key_fields(commands.key_fields));
    let divided = match commands.partition_fields {
        Some(fields) => mapped.partition_by(move |key, partitions| {
            let hash = xxh3_64(first_fields(key, fields));
            ((u128::from(hash) * u128::from(partitions)) >> 64) as u32
        }),
        None => mapped,
    };
    divided.reducer(CommandReducer::new(reducer))
}

/// A command whose output is sorted by its keys, as a reduce would get it, and goes through another command.
///
/// A shell tells the end of the last command of a pipe only: the others leave a file behind when they fail,
/// beside which each attempt is alone. `sort` is not missed by a combiner that has read enough.
fn combined(mapper: &str, combiner: &str, key_fields: NonZeroU32) -> String {
    // What an error shows of a command is its beginning.
    let shown = |command: &str| command.split_whitespace().collect::<Vec<_>>().join(" ");
    format!(
        "# {} | sort | {}\n\
         napreduce_failed=$PWD/.napreduce-failed\n\
         {{ (\n{mapper}\n) || echo $? > \"$napreduce_failed\"; }} | \
         {{ LC_ALL=C sort -s -S 64M -T . -t '\t' -k 1,{key_fields} || {{ napreduce_status=$?; \
         [ $napreduce_status = 141 ] || echo $napreduce_status > \"$napreduce_failed\"; }}; }} | \
         (\n{combiner}\n) || exit\n\
         [ ! -e \"$napreduce_failed\" ] || exit \"$(cat \"$napreduce_failed\")\"",
        shown(mapper),
        shown(combiner)
    )
}

/// A job without reduce: what the command writes of a split is a part file.
///
/// ```
/// use napreduce::streaming::map_only;
///
/// let errors = map_only("grep ERROR || true");
/// # let _ = errors;
/// ```
pub fn map_only(command: impl Into<String>) -> Job {
    Job::bytes().part_map(Text, CommandPart::new(command.into()))
}

/// Adds the job to a program under the name `streaming`, to be called with [`Commands`].
///
/// ```no_run
/// use napreduce::program::Error;
/// use napreduce::streaming::{Commands, add_to};
/// use napreduce::{Driver, Program};
///
/// fn drive(driver: &mut Driver, _: &()) -> Result<(), Error> {
///     driver.job("streaming").parameters(&Commands::mapper("cat")).run().map(drop)
/// }
///
/// fn main() -> std::process::ExitCode {
///     add_to(Program::new()).drive(drive)
/// }
/// ```
pub fn add_to(program: Program) -> Program {
    program.job(NAME, job)
}

/// The `main` of a program, or of a subcommand, whose commands come from the command line, as do its
/// inputs: `--input`.
///
/// ```no_run
/// use napreduce::{Program, streaming};
///
/// fn main() -> std::process::ExitCode {
///     streaming::main(Program::new().about("Runs commands over lines"))
/// }
/// ```
#[must_use = "the exit status says whether the job succeeded; return it from `main`"]
pub fn main(program: Program) -> ExitCode {
    add_to(program).inputs_by_name().drive(|driver: &mut Driver<'_>, commands: &Commands| {
        commands.check().map_err(Error::Usage)?;
        let Commands { mapper, combiner, reducer, .. } = commands;
        let mapper = take_along(driver, "--mapper", mapper)?;
        let combiner =
            combiner.as_deref().map(|combiner| take_along(driver, "--combiner", combiner)).transpose()?;
        let reducer =
            reducer.as_deref().map(|reducer| take_along(driver, "--reducer", reducer)).transpose()?;
        tell_of_others(driver, "--mapper", &mapper);
        for (flag, command) in [("--combiner", &combiner), ("--reducer", &reducer)] {
            if let Some(command) = command {
                tell_of_others(driver, flag, command);
            }
        }
        driver
            .job(NAME)
            .parameters(&Commands { mapper, combiner, reducer, ..commands.clone() })
            .run()
            .map(drop)
    })
}
