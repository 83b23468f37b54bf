//! The command line of a job program: its own parameters and the flags of [`options`](super::options), with
//! help.

use std::ffi::OsString;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::rc::Rc;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use napreduce_protocol::printing::printed;
use napreduce_protocol::protocol_versions;

use super::invocation::without_secrets;
use super::options::{ReportFormat, RunArguments, program_name};
use crate::settings::SETTINGS_HELP;

/// The parsed command line of a job program.
pub(crate) struct CommandLine<P> {
    pub run: RunArguments,
    pub parameters: P,
    pub report: ReportFormat,
}

const REPORT_ID: &str = "napreduce-report-format";

/// Builds the command of a program: the user's own parameters first, then the common flags.
///
/// A program that defines `--format` itself (terasort's rows) keeps it; the report format is then
/// `--report-format`.
fn command<P: Args>(face: &Face, input_names: Option<Vec<String>>) -> Command {
    let Face {
        about, examples, ..
    } = face;
    let mut command = P::augment_args(Command::new(face.name()));
    let format_taken = command
        .get_arguments()
        .any(|argument| argument.get_long() == Some("format"));
    command = RunArguments::augment_args(command);
    if let Some(names) = input_names {
        let forms: Vec<String> = names.iter().map(|name| format!("{name}=PATH")).collect();
        command = command.mut_arg("inputs", |inputs| {
            inputs.value_name("NAME=PATH").help(format!(
                "Input files, directories (names starting with `_` or `.` are skipped) or globs (** for any depth) by the \
                 name of their input: {}; repeatable",
                forms.join(", ")
            ))
        });
    }
    if face.names_inputs {
        command = command.mut_arg("inputs", |inputs| {
            inputs.long("input").action(ArgAction::Append)
        });
    }
    let report = Arg::new(REPORT_ID)
        .long(if format_taken {
            "report-format"
        } else {
            "format"
        })
        .value_name("FORMAT")
        .value_parser(clap::value_parser!(ReportFormat))
        .default_value("text")
        .help("Format of the final report");
    let mut after = String::new();
    if !examples.is_empty() {
        after.push_str("Examples:\n");
        for line in examples.lines() {
            after.push_str("  ");
            after.push_str(line.trim());
            after.push('\n');
        }
        after.push('\n');
    }
    after.push_str(SETTINGS_HELP);
    after.push_str(STATUS_HELP);
    // A program may have parameters with these names.
    let has_version = command
        .get_arguments()
        .any(|argument| argument.get_long() == Some("version"));
    if !has_version {
        let short = command
            .get_arguments()
            .all(|argument| argument.get_short() != Some('V'))
            .then_some('V');
        let version = Arg::new("napreduce-version")
            .long("version")
            .short(short)
            .action(ArgAction::Version);
        command = command
            .version(format!(
                "(napreduce {}, {})",
                env!("CARGO_PKG_VERSION"),
                protocol_versions()
            ))
            .arg(version.help("Print versions"));
    }
    // Must come last: the doc comment of the parameter struct would replace it.
    command
        .disable_version_flag(true)
        .arg(report)
        .about(about.to_owned())
        .after_help(after)
}

/// Returns the names of a program's inputs, if it has any and they are known without parameters. The
/// definition is called for this with default parameters; if it panics, the message is suppressed.
#[expect(
    clippy::disallowed_methods,
    reason = "a program has one thread when it reads its arguments"
)]
fn input_names(face: &Face) -> Option<Vec<String>> {
    let names = face.input_names.as_ref()?;
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let names = panic::catch_unwind(AssertUnwindSafe(|| names()))
        .ok()
        .flatten();
    panic::set_hook(hook);
    names?.into_iter().collect()
}

/// Returns the parameters of a program that is called without any; `None` if some are required.
pub(crate) fn default_parameters<P: Args>() -> Option<P> {
    let matches = P::augment_args(Command::new(""))
        .try_get_matches_from([""])
        .ok()?;
    P::from_arg_matches(&matches).ok()
}

const STATUS_HELP: &str = "\n
Exit status: 0 success, 1 job failed, 2 usage or input error, 69 no reachable or
compatible coordinator, 128 plus the number of the signal that ended the program";

/// Returns the names of a job's inputs, if its definition needs no parameters.
pub(crate) type InputNames = Rc<dyn Fn() -> Option<Vec<Option<String>>>>;

/// The help of a program, and the way it is called.
#[derive(Default)]
pub(crate) struct Face {
    pub about: String,
    pub examples: String,
    /// The subcommand of another program that calls this one, and its arguments.
    pub called: Option<(String, Vec<OsString>)>,
    /// Inputs are given with `--input` instead of by position.
    pub names_inputs: bool,
    /// Returns the names of the inputs of the only job.
    pub input_names: Option<InputNames>,
}

impl Face {
    pub(crate) fn name(&self) -> String {
        self.called
            .as_ref()
            .map_or_else(program_name, |(name, _)| name.clone())
    }
}

/// Parses the arguments. Prints help, a version or a usage error if necessary, and then returns the exit
/// status.
pub(crate) fn parse<P: Args>(face: &Face) -> Result<CommandLine<P>, ExitCode> {
    let arguments = match &face.called {
        Some((_, arguments)) => arguments.clone(),
        None => std::env::args_os().skip(1).collect(),
    };
    let line: Vec<OsString> = std::iter::once(face.name().into())
        .chain(arguments)
        .collect();
    let matches = command::<P>(face, None).try_get_matches_from(&line);
    // The names of inputs are only needed for the help.
    let matches =
        matches.or_else(|_| command::<P>(face, input_names(face)).try_get_matches_from(line));
    matches
        .and_then(|matches| from_matches(&matches))
        .map_err(|refused| {
            let result = refused.print();
            if !refused.use_stderr() {
                printed(result);
            }
            ExitCode::from(u8::try_from(refused.exit_code()).unwrap_or(1))
        })
}

fn from_matches<P: Args>(matches: &ArgMatches) -> Result<CommandLine<P>, clap::Error> {
    let report = matches
        .get_one::<ReportFormat>(REPORT_ID)
        .copied()
        .unwrap_or(ReportFormat::Text);
    let mut run = RunArguments::from_arg_matches(matches)?;
    run.command = without_secrets(std::env::args_os());
    Ok(CommandLine {
        run,
        parameters: P::from_arg_matches(matches)?,
        report,
    })
}
