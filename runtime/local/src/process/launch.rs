//! The parameters of a task process.

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;

/// An environment variable of a task process; `None` removes it.
pub type Variable = (&'static str, Option<OsString>);

/// The parameters of a task process.
#[derive(Debug, Default)]
pub struct Launch {
    pub variables: Vec<Variable>,
    /// The environment without these variables; `None` for this program's own.
    pub environment: Option<Vec<(OsString, OsString)>>,
    /// `None` for this program.
    pub program: Option<Executable>,
    /// The working directory; `None` for this program's.
    pub directory: Option<PathBuf>,
    /// The output files; `None` for this program's standard error.
    pub output: Option<TaskOutput>,
    /// Whether output without files is dropped.
    pub is_silent: bool,
}

/// A program of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executable {
    pub path: PathBuf,
    /// The program's own name, `argv[0]`.
    pub name: OsString,
}

/// Files for the output of a task process.
#[derive(Debug)]
pub struct TaskOutput {
    pub stdout: File,
    pub stderr: File,
}
