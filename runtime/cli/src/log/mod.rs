//! The log flags of the daemons.

mod lines;

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};

pub use self::lines::LogError;

/// Where a daemon's log goes. What is worth a line says `NAPREDUCE_LOG`.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Log")]
pub struct LogArguments {
    /// How its lines look; NAPREDUCE_LOG=debug, or by part info,worker=debug, says what is worth one
    /// [default: text]
    #[arg(long, value_name = "FORM", env = "NAPREDUCE_LOG_FORMAT")]
    pub log_format: Option<LogFormat>,

    /// Directory of its files, one for each of the last seven days; without it the log goes to standard error
    #[arg(long, value_name = "DIR", env = "NAPREDUCE_LOG_DIRECTORY")]
    pub log_directory: Option<PathBuf>,
}

/// How the lines of a log look: for people when (UTC), who and what, for programs one object each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

impl LogArguments {
    /// Has the log of this daemon go there; its files are called by this name.
    pub fn start(&self, name: &str) -> Result<()> {
        let files = self.log_directory.as_deref().map(|directory| (directory, name));
        Ok(lines::start(self.log_format.unwrap_or_default(), files)?)
    }

    /// The flags that were given, for another process.
    pub fn to_line(&self) -> Vec<OsString> {
        let format = self.log_format.and_then(|format| format.to_possible_value());
        let format = format.map(|format| format.get_name().into());
        let directory = self.log_directory.clone().map(OsString::from);
        let flags = [("--log-format", format), ("--log-directory", directory)];
        flags.into_iter().filter_map(|(flag, value)| Some([flag.into(), value?])).flatten().collect()
    }
}
