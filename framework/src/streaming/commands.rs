//! The job of `nap streaming`, whose mapper and reducer are commands.

use std::num::NonZeroU32;
use std::process::ExitCode;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use napreduce_task::{CommandLine, FAILED_PART};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::lines::FirstFields;
use super::mapper::{CommandMapper, CommandPart, TAB};
use super::reducer::CommandReducer;
use super::shipping::{ship_program, warn_of_unshipped_file};
use crate::builder::Job;
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
    /// Command that reads lines and writes lines of key TAB value; run by sh -c, once per map task. A local
    /// file that it begins with, such as ./map.py, is shipped
    #[arg(long, value_name = "CMD", value_parser = NonEmptyStringValueParser::new())]
    pub mapper: String,

    /// Command that reads the sorted output of one map task and writes fewer lines of the same form
    #[arg(long, value_name = "CMD", value_parser = NonEmptyStringValueParser::new())]
    #[serde(default)]
    pub combiner: Option<String>,

    /// Command that reads sorted lines of key TAB value and writes the output [default: NONE, the mapper
    /// writes the output]
    #[arg(long, value_name = "CMD", value_parser = NonEmptyStringValueParser::new())]
    pub reducer: Option<String>,

    /// Number of leading fields that form the key
    #[arg(long, value_name = "N", default_value = "1")]
    #[serde(default = "one")]
    pub key_fields: NonZeroU32,

    /// Number of leading fields of the key that select the reduce; lines are sorted by the whole key
    /// [default: all fields of the key]
    #[arg(long, value_name = "N")]
    #[serde(default)]
    pub partition_fields: Option<NonZeroU32>,

    /// Separator of the fields in the mapper's output; reducers always read key TAB value
    #[arg(long, value_name = "BYTE", default_value = "\\t", value_parser = separator)]
    #[serde(default = "tab")]
    pub separator: u8,
}

impl Commands {
    /// Creates a job with a mapper only, and keys of one field.
    ///
    /// ```
    /// use napreduce::streaming::{Commands, job};
    ///
    /// let errors = job(&Commands::mapper("grep ERROR || true"));
    /// # let _ = errors;
    /// ```
    pub fn mapper(mapper: impl Into<String>) -> Commands {
        let mapper = mapper.into();
        Commands {
            mapper,
            combiner: None,
            reducer: None,
            key_fields: one(),
            partition_fields: None,
            separator: TAB,
        }
    }

    fn reduce_command(&self) -> Option<&str> {
        self.reducer.as_deref().filter(|reducer| *reducer != NONE)
    }

    /// Rejects options without effect.
    fn check(&self) -> Result<(), Error> {
        if self.reduce_command().is_none() {
            let flags = [
                ("--combiner", self.combiner.is_some()),
                ("--key-fields", self.key_fields != one()),
                ("--partition-fields", self.partition_fields.is_some()),
                ("--separator", self.separator != TAB),
            ];
            if let Some((flag, _)) = flags.into_iter().find(|(_, is_set)| *is_set) {
                return Err(Error::Usage(format!(
                    "{flag}: has no effect without a reducer; add --reducer or remove {flag}"
                )));
            }
        }
        if self.combiner.is_some() && self.separator != TAB {
            let why = "--separator: a combiner reads and writes key TAB value; remove --separator or --combiner";
            return Err(Error::Usage(why.to_owned()));
        }
        match self.partition_fields {
            Some(fields) if fields > self.key_fields => Err(Error::Usage(format!(
                "--partition-fields {fields}: more fields than the key has ({}); raise --key-fields",
                self.key_fields
            ))),
            _ => Ok(()),
        }
    }
}

fn one() -> NonZeroU32 {
    NonZeroU32::MIN
}

fn tab() -> u8 {
    TAB
}

fn separator(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" => Ok(TAB),
        [byte] if *byte != b'\n' => Ok(*byte),
        _ => Err("expected one byte, such as ',', or \\t for TAB".to_owned()),
    }
}

/// Creates the job of these commands: text in, text out.
///
/// ```
/// use napreduce::streaming::{Commands, job};
///
/// let lines = job(&Commands { reducer: Some("cut -f 1".to_owned()), ..Commands::mapper("cat") });
/// # let _ = lines;
/// ```
pub fn job(commands: &Commands) -> Job {
    let Some(reducer) = commands.reduce_command() else {
        return map_only(&commands.mapper);
    };
    let mapper = CommandLine::new("mapper", &commands.mapper);
    let mapper = match &commands.combiner {
        Some(combiner) => combined(mapper, combiner, commands.key_fields),
        None => mapper,
    };
    let mapped = Job::bytes().mapper(
        CommandMapper::of(mapper)
            .key_fields(commands.key_fields)
            .separator(commands.separator),
    );
    let divided = match commands.partition_fields {
        Some(count) => {
            let fields = FirstFields {
                count,
                separator: commands.separator,
            };
            mapped.partition_by(move |key, partitions| {
                let hash = xxh3_64(fields.of_key(key));
                ((u128::from(hash) * u128::from(partitions)) >> 64) as u32
            })
        }
        None => mapped,
    };
    divided.reducer(CommandReducer::new(reducer))
}

/// A shell script that runs the mapper, sorts its output by key and runs the combiner over it.
///
/// A shell returns only the status of the last command of a pipeline. Each command therefore writes its
/// number and status to descriptor 3, which `set` reads; descriptor 4 is the output. The script fails unless
/// it has all three statuses. A `sort` killed by SIGPIPE (status 141) is not a failure: the combiner has read
/// enough.
fn combined(mapper: CommandLine, combiner: &str, key_fields: NonZeroU32) -> CommandLine {
    let (_, command) = mapper.first();
    let script = format!(
        "exec 4>&1\n\
         set -- $({{ {{ (\n{command}\n) 3>&- 4>&-; echo 0:$? >&3; }} | \
         {{ LC_ALL=C sort -s -S 64M -T . -t '\t' -k 1,{key_fields} 3>&- 4>&-; echo 1:$? >&3; }} | \
         {{ (\n{combiner}\n) >&4 3>&- 4>&-; echo 2:$? >&3; }}; }} 3>&1)\n\
         [ $# = 3 ] || exit 1\n\
         failed=\n\
         for part in 0 1 2; do for status; do case $status in \
         $part:0 | 1:141) ;; $part:*) failed=$status ;; esac; done; done\n\
         [ -z \"$failed\" ] || {{ echo \"$failed\" > {FAILED_PART}; exit \"${{failed#*:}}\"; }}"
    );
    let others = [
        ("sort in front of the combiner", "sort"),
        ("combiner", combiner),
    ];
    mapper.within(
        script,
        others
            .map(|(role, command)| (role, command.to_owned()))
            .into(),
    )
}

/// Creates a job without reduce: the output of the command for a split is a part file.
///
/// ```
/// use napreduce::streaming::map_only;
///
/// let errors = map_only("grep ERROR || true");
/// # let _ = errors;
/// ```
pub fn map_only(command: impl Into<String>) -> Job {
    Job::bytes().part_map(CommandPart::new(command.into()))
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
// Compiled in the programs that call it: `drive` adds the entry of the fork server to the code around it.
#[inline]
#[must_use = "the exit status shows whether the job succeeded; return it from `main`"]
pub fn main(program: Program) -> ExitCode {
    add_to(program)
        .inputs_by_name()
        .drive(|driver: &mut Driver<'_>, commands: &Commands| {
            commands.check()?;
            let Commands {
                mapper,
                combiner,
                reducer,
                ..
            } = commands;
            let mapper = ship_program(driver, "--mapper", mapper)?;
            let combiner = combiner
                .as_deref()
                .map(|combiner| ship_program(driver, "--combiner", combiner))
                .transpose()?;
            let reducer = reducer
                .as_deref()
                .map(|reducer| ship_program(driver, "--reducer", reducer))
                .transpose()?;
            warn_of_unshipped_file(driver, "--mapper", &mapper);
            for (flag, command) in [("--combiner", &combiner), ("--reducer", &reducer)] {
                if let Some(command) = command {
                    warn_of_unshipped_file(driver, flag, command);
                }
            }
            driver
                .job(NAME)
                .parameters(&Commands {
                    mapper,
                    combiner,
                    reducer,
                    ..commands.clone()
                })
                .run()
                .map(drop)
        })
}
