//! The command line that every job program has, beside its own parameters.
//!
//! Owns the flags, their defaults and their help. Does not own what a job does with them.

use std::ffi::OsString;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use napreduce_live::ProgressMode;
use napreduce_protocol::printing::printed;
use napreduce_protocol::{ByteSize, ByteSizeError, protocol_versions};

use super::cluster::ClusterArguments;
use super::engine::EngineArguments;
use crate::input::{BadRows, local_path};
use crate::settings::SETTINGS_HELP;

/// How the report at the end of a program is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// Counters, wall time and output path for people, on standard error.
    Text,
    /// One JSON object on standard output.
    Json,
}

/// When progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ProgressArgument {
    /// Bars on a terminal, plain lines elsewhere, nothing for jobs under a second.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The flags of `wordcount INPUT... --output DIR ...`.
#[derive(Debug, Clone, Args)]
pub(crate) struct RunArguments {
    /// Input files, directories (names starting with `_` or `.` are skipped) or globs (** for any depth); -
    /// is standard input
    #[arg(value_name = "INPUT", required = true)]
    pub inputs: Vec<PathBuf>,

    /// Read files in directories of directories, too
    #[arg(long)]
    pub recursive: bool,

    /// Directory to create for the output
    #[arg(long, value_name = "DIR", value_parser = local_paths())]
    pub output: PathBuf,

    /// Of programs with several jobs: where a directory for what passes between them is made, and removed
    /// at the end; on a cluster, all workers see it [default: beside the output]
    #[arg(long, value_name = "DIR", value_parser = local_paths())]
    pub intermediate: Option<PathBuf>,

    /// Reduce tasks, and so part files [default: the number of slots]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub reduces: Option<u32>,

    /// Tasks of each kind that run at once, without a cluster [default: the number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4_096))]
    pub slots: Option<u32>,

    /// Input bytes for one map task
    #[arg(long, value_name = "SIZE", default_value = "64MiB")]
    pub split_size: ByteSize,

    /// Memory that one task may use for records
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = parse_task_memory)]
    pub task_memory: ByteSize,

    /// Of jobs over rows, such as csv: what to do about rows that are not of the job's type: fail, skip, or N
    /// to leave out at most so many in each map task; they are counted as BAD_ROWS
    #[arg(long, value_name = "fail|skip|N", default_value = "fail")]
    pub bad_rows: BadRows,

    /// What to do about records that the job's own map calls bad: fail, skip, or N to leave out at most so
    /// many in each map task; they are counted as BAD_RECORDS
    #[arg(long, value_name = "fail|skip|N", default_value = "fail")]
    pub bad_records: BadRows,

    /// Replace an existing output, once the job has succeeded
    #[arg(long)]
    pub overwrite: bool,

    /// Name of the job, for people [default: the program's name]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// A setting by name; see the list below
    #[arg(long, value_name = "KEY=VALUE")]
    pub conf: Vec<String>,

    /// When to show progress, on standard error
    #[arg(long, value_name = "WHEN", value_enum, default_value = "auto")]
    progress: ProgressArgument,

    /// Print nothing but why the job failed, and nothing of what its tasks print
    #[arg(long, short)]
    pub quiet: bool,

    #[command(flatten)]
    pub cluster: ClusterArguments,

    #[command(flatten)]
    pub engine: EngineArguments,
}

impl RunArguments {
    pub(crate) fn progress_mode(&self) -> ProgressMode {
        match self.progress {
            _ if self.quiet => ProgressMode::Never,
            ProgressArgument::Auto => ProgressMode::Auto,
            ProgressArgument::Always => ProgressMode::Always,
            ProgressArgument::Never => ProgressMode::Never,
        }
    }
}

/// Paths, of which `file:///path` is one, too.
fn local_paths() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().map(|path| local_path(&path))
}

/// The least that a task can be divided for, and the most: what is larger is a slip of the pen.
const TASK_MEMORY: (ByteSize, ByteSize) = (ByteSize::new(1 << 20), ByteSize::new(1 << 40));

fn parse_task_memory(text: &str) -> Result<ByteSize, String> {
    let size: ByteSize = text.parse().map_err(|error: ByteSizeError| error.to_string())?;
    let (least, most) = TASK_MEMORY;
    if (least..=most).contains(&size) {
        Ok(size)
    } else {
        Err(format!("a task has {least} at least and {most} at most; 256MiB is usual"))
    }
}

/// What one invocation of a job program asks for.
pub(crate) struct CommandLine<P> {
    pub run: RunArguments,
    pub parameters: P,
    pub report: ReportFormat,
}

const REPORT_ID: &str = "napreduce-report-format";

/// Builds the command of a program: the user's own parameters first, ours after them.
///
/// A program that defines `--format` for itself (terasort's rows) keeps it; the report is then chosen with
/// `--report-format`.
fn command<P: Args>(face: &Face, input_names: Option<Vec<String>>) -> Command {
    let Face { about, examples, .. } = face;
    let mut command = P::augment_args(Command::new(face.name()));
    let format_taken = command.get_arguments().any(|argument| argument.get_long() == Some("format"));
    command = RunArguments::augment_args(command);
    if let Some(names) = input_names {
        let forms: Vec<String> = names.iter().map(|name| format!("{name}=PATH")).collect();
        command = command.mut_arg("inputs", |inputs| {
            inputs.value_name("NAME=PATH").help(format!(
                "Input files by the name of their input: {}; directories (names starting with `_` or `.` are skipped) and \
                 globs (** for any depth), too, and several for a name",
                forms.join(", ")
            ))
        });
    }
    if face.names_inputs {
        command = command.mut_arg("inputs", |inputs| inputs.long("input").action(ArgAction::Append));
    }
    let report = Arg::new(REPORT_ID)
        .long(if format_taken { "report-format" } else { "format" })
        .value_name("FORMAT")
        .value_parser(clap::value_parser!(ReportFormat))
        .default_value("text")
        .help("How to print the report at the end");
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
    // A program may have parameters of these names.
    let has_version = command.get_arguments().any(|argument| argument.get_long() == Some("version"));
    if !has_version {
        let short = command.get_arguments().all(|argument| argument.get_short() != Some('V')).then_some('V');
        let version = Arg::new("napreduce-version").long("version").short(short).action(ArgAction::Version);
        command = command
            .version(format!("(napreduce {}, {})", env!("CARGO_PKG_VERSION"), protocol_versions()))
            .arg(version.help("Print versions"));
    }
    // Last, because the comment of a struct of parameters would take its place.
    command.disable_version_flag(true).arg(report).about(about.to_owned()).after_help(after)
}

/// The names of a program's inputs, if they have any and can be known before there are parameters. Since a
/// definition is called for it, and may not be made for that, what it panics with is not shown.
#[expect(clippy::disallowed_methods, reason = "a program has one thread when it reads its arguments")]
fn input_names(face: &Face) -> Option<Vec<String>> {
    let asked = face.input_names.as_ref()?;
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let names = panic::catch_unwind(AssertUnwindSafe(|| asked())).ok().flatten();
    panic::set_hook(hook);
    names?.into_iter().collect()
}

/// The parameters of a program that is told none; `None` if it has to be told some.
pub(crate) fn parameters_unsaid<P: Args>() -> Option<P> {
    let matches = P::augment_args(Command::new("")).try_get_matches_from([""]).ok()?;
    P::from_arg_matches(&matches).ok()
}

const STATUS_HELP: &str = "\n
Exit status: 0 done, 1 the job failed, 2 wrong usage or bad input, 69 no coordinator answers (or none that this
program can talk to), 128 and the number of the signal that ended it";

/// The file name of this program, as it was called.
pub(crate) fn program_name() -> String {
    let called = std::env::args_os().next().unwrap_or_default();
    let name = std::path::Path::new(&called).file_name().unwrap_or_default().to_string_lossy().into_owned();
    if name.is_empty() { "job".to_owned() } else { name }
}

/// The names of a job's inputs, if its definition needs no parameters to say so.
pub(crate) type InputNames = Rc<dyn Fn() -> Option<Vec<Option<String>>>>;

/// What a program shows of itself, and what it is called with.
#[derive(Default)]
pub(crate) struct Face {
    pub about: String,
    pub examples: String,
    /// As which subcommand of another program, with which arguments.
    pub called: Option<(String, Vec<OsString>)>,
    /// Inputs are given as `--input`, and not by where they stand.
    pub names_inputs: bool,
    /// Gives the names of the inputs of the one job.
    pub input_names: Option<InputNames>,
}

impl Face {
    pub(crate) fn name(&self) -> String {
        self.called.as_ref().map_or_else(program_name, |(name, _)| name.clone())
    }
}

/// Parses the arguments. Otherwise prints help, a version or a usage error, and returns the exit status.
pub(crate) fn parse<P: Args>(face: &Face) -> Result<CommandLine<P>, ExitCode> {
    let arguments = match &face.called {
        Some((_, arguments)) => arguments.clone(),
        None => std::env::args_os().skip(1).collect(),
    };
    let line: Vec<OsString> = std::iter::once(face.name().into()).chain(arguments).collect();
    let matches = command::<P>(face, None).try_get_matches_from(&line);
    // Only whoever reads about the inputs needs their names.
    let matches = matches.or_else(|_| command::<P>(face, input_names(face)).try_get_matches_from(line));
    matches.and_then(|matches| from_matches(&matches)).map_err(|refused| {
        let result = refused.print();
        if !refused.use_stderr() {
            printed(result);
        }
        ExitCode::from(u8::try_from(refused.exit_code()).unwrap_or(1))
    })
}

fn from_matches<P: Args>(matches: &ArgMatches) -> Result<CommandLine<P>, clap::Error> {
    let report = matches.get_one::<ReportFormat>(REPORT_ID).copied().unwrap_or(ReportFormat::Text);
    Ok(CommandLine {
        run: RunArguments::from_arg_matches(matches)?,
        parameters: P::from_arg_matches(matches)?,
        report,
    })
}
