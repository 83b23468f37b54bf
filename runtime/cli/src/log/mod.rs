//! The log flags of the daemons.

mod lines;

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};

pub use self::lines::LogError;

/// The log of a daemon. `NAPREDUCE_LOG` sets its levels.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Log")]
pub struct LogArguments {
    /// Format of the log; NAPREDUCE_LOG sets levels, such as debug or info,worker=debug [default: text]
    #[arg(long, value_name = "FORM", env = "NAPREDUCE_LOG_FORMAT")]
    pub log_format: Option<LogFormat>,

    /// Directory for daily log files, of which seven are kept [default: log to standard error]
    #[arg(long, value_name = "DIR", env = "NAPREDUCE_LOG_DIRECTORY")]
    pub log_directory: Option<PathBuf>,
}

/// Lines of a log: text with time (UTC), component and message, or JSON objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

impl LogArguments {
    /// Starts the log of this daemon; `name` begins the names of its files.
    pub fn start(&self, name: &str) -> Result<()> {
        let files = self.log_directory.as_deref().map(|directory| (directory, name));
        Ok(lines::start(self.log_format.unwrap_or_default(), files)?)
    }

    /// Returns the flags that were given, for another process.
    pub fn to_line(&self) -> Vec<OsString> {
        let format = self.log_format.and_then(|format| format.to_possible_value());
        let format = format.map(|format| format.get_name().into());
        let directory = self.log_directory.clone().map(OsString::from);
        let flags = [("--log-format", format), ("--log-directory", directory)];
        flags.into_iter().filter_map(|(flag, value)| Some([flag.into(), value?])).flatten().collect()
    }
}
