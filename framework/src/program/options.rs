//! The flags of every job program, with the feature `cli`, and their defaults without it.

#[cfg(feature = "cli")]
use std::ops::RangeInclusive;
use std::path::PathBuf;

#[cfg(feature = "cli")]
use clap::builder::{PathBufValueParser, TypedValueParser};
use napreduce_local::ProgressMode;
use napreduce_protocol::ByteSize;

use super::cluster::ClusterArguments;
use super::engine::EngineArguments;
use crate::input::Skip;
#[cfg(feature = "cli")]
use crate::limits::{REDUCES, SLOTS, TASK_MEMORY};

/// How the report at the end of a program is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub(crate) enum ReportFormat {
    /// Counters, wall time and output path as text, on standard error.
    Text,
    /// One JSON object on standard output.
    Json,
}

/// When progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
enum ProgressArgument {
    /// Bars on a terminal, plain lines elsewhere, nothing for jobs under a second.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The flags of `wordcount INPUT... --output DIR ...`.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub(crate) struct RunArguments {
    /// Input files, directories (names starting with `_` or `.` are skipped) or globs (** for any depth); -
    /// is standard input
    #[cfg_attr(feature = "cli", arg(value_name = "INPUT", required = true))]
    pub inputs: Vec<PathBuf>,

    /// Also read files in subdirectories
    #[cfg_attr(feature = "cli", arg(long))]
    pub recursive: bool,

    /// Directory to create for the output
    #[cfg_attr(feature = "cli", arg(long, value_name = "DIR", value_parser = local_paths()))]
    pub output: PathBuf,

    /// Parent of the temporary directory for data between the jobs of a program; on a cluster, all workers
    /// must see it [default: next to the output]
    #[cfg_attr(feature = "cli", arg(long, value_name = "DIR", value_parser = local_paths()))]
    pub intermediate: Option<PathBuf>,

    /// Number of reduce tasks and part files [default: the number of slots]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = within(REDUCES)))]
    pub reduces: Option<u32>,

    /// Concurrent tasks of each kind, without a cluster [default: the number of cores]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = within(SLOTS)))]
    pub slots: Option<u32>,

    /// Input bytes for one map task
    #[cfg_attr(feature = "cli", arg(long, value_name = "SIZE", default_value_t = SPLIT_SIZE_DEFAULT))]
    pub split_size: ByteSize,

    /// Memory that one task may use for records
    #[cfg_attr(feature = "cli", arg(long, value_name = "SIZE", default_value_t = TASK_MEMORY_DEFAULT, value_parser = parse_task_memory))]
    pub task_memory: ByteSize,

    /// Rows (csv, JSON lines, ...) that do not match the job's row type, and records that its map rejects as
    /// bad: fail, skip all, or skip at most N per map task; counted as BAD_ROWS and BAD_RECORDS
    #[cfg_attr(
        feature = "cli",
        arg(long, aliases = ["bad-rows", "bad-records"], value_name = "fail|skip|N", default_value = "fail")
    )]
    pub bad_input: Skip,

    /// Replace an existing output when the job succeeds
    #[cfg_attr(feature = "cli", arg(long))]
    pub overwrite: bool,

    /// Name of the job [default: the program's name]
    #[cfg_attr(feature = "cli", arg(long, value_name = "NAME"))]
    pub name: Option<String>,

    /// Setting by name; see the list below
    #[cfg_attr(feature = "cli", arg(long, value_name = "KEY=VALUE"))]
    pub conf: Vec<String>,

    /// Progress display on standard error
    #[cfg_attr(
        feature = "cli",
        arg(long, value_name = "WHEN", value_enum, default_value = "auto")
    )]
    progress: ProgressArgument,

    /// Print only errors of the job, and no output of its tasks
    #[cfg_attr(feature = "cli", arg(long, short))]
    pub quiet: bool,

    #[cfg_attr(feature = "cli", command(flatten))]
    pub cluster: ClusterArguments,

    #[cfg_attr(feature = "cli", command(flatten))]
    pub engine: EngineArguments,

    /// The whole command line, without secrets; empty for runs without one.
    #[cfg_attr(feature = "cli", arg(skip))]
    pub command: Vec<String>,
}

const SPLIT_SIZE_DEFAULT: ByteSize = ByteSize::new(64 << 20);
const TASK_MEMORY_DEFAULT: ByteSize = ByteSize::new(256 << 20);

impl RunArguments {
    /// Returns the default flags without any printing, for runs without a command line.
    pub(crate) fn silent(output: PathBuf) -> RunArguments {
        RunArguments {
            inputs: Vec::new(),
            recursive: false,
            output,
            intermediate: None,
            reduces: None,
            slots: None,
            split_size: SPLIT_SIZE_DEFAULT,
            task_memory: TASK_MEMORY_DEFAULT,
            bad_input: Skip::None,
            overwrite: false,
            name: None,
            conf: Vec::new(),
            progress: ProgressArgument::Never,
            quiet: true,
            cluster: ClusterArguments::default(),
            engine: EngineArguments::default(),
            command: Vec::new(),
        }
    }

    pub(crate) fn progress_mode(&self) -> ProgressMode {
        match self.progress {
            _ if self.quiet => ProgressMode::Never,
            ProgressArgument::Auto => ProgressMode::Auto,
            ProgressArgument::Always => ProgressMode::Always,
            ProgressArgument::Never => ProgressMode::Never,
        }
    }
}

/// Returns the parser of paths; also accepts `file:///path`.
#[cfg(feature = "cli")]
fn local_paths() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().map(|path| crate::input::local_path(&path))
}

/// Returns the parser of a number in a range.
#[cfg(feature = "cli")]
fn within(valid: RangeInclusive<u32>) -> impl TypedValueParser<Value = u32> {
    clap::value_parser!(u32).range(i64::from(*valid.start())..=i64::from(*valid.end()))
}

#[cfg(feature = "cli")]
fn parse_task_memory(text: &str) -> Result<ByteSize, String> {
    let size: ByteSize = text
        .parse()
        .map_err(|error: napreduce_protocol::ByteSizeError| error.to_string())?;
    if TASK_MEMORY.contains(&size) {
        Ok(size)
    } else {
        Err(format!(
            "expected {} to {} (default 256MiB)",
            TASK_MEMORY.start(),
            TASK_MEMORY.end()
        ))
    }
}

/// Returns the file name of this program as it was called.
pub(crate) fn program_name() -> String {
    let called = std::env::args_os().next().unwrap_or_default();
    let name = std::path::Path::new(&called)
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    if name.is_empty() {
        "job".to_owned()
    } else {
        name
    }
}
