//! What a shell is given to run, and the commands in it, which errors name.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

/// The file in the directory of a command line where it leaves `PART:STATUS` of the command that failed.
pub const FAILED_PART: &str = ".napreduce-failed";

/// A script for `sh -c`, of one command or several.
#[derive(Debug, Clone)]
pub struct CommandLine {
    pub(super) script: String,
    /// The commands in it, each with what it is for. Errors about none in particular name the first.
    parts: Vec<(&'static str, String)>,
}

impl CommandLine {
    /// A command alone. `role` says in messages what it is for.
    pub fn new(role: &'static str, command: impl Into<String>) -> CommandLine {
        let command = command.into();
        CommandLine { script: command.clone(), parts: vec![(role, command)] }
    }

    /// A script that runs other commands with it, and that leaves [`FAILED_PART`] when one of them fails.
    #[must_use]
    pub fn within(mut self, script: String, others: Vec<(&'static str, String)>) -> CommandLine {
        self.parts.extend(others);
        CommandLine { script, ..self }
    }

    /// What its first command is for, and that command.
    pub fn first(&self) -> (&'static str, &str) {
        self.parts.first().map_or(("command", ""), |(role, command)| (role, command))
    }

    /// The command that failed and its status, when the script has ended with `status` in `directory`.
    pub(super) fn failed(
        &self,
        directory: Option<&Path>,
        status: ExitStatus,
    ) -> (&'static str, &str, ExitStatus) {
        let left = || {
            let text = fs::read_to_string(directory?.join(FAILED_PART)).ok()?;
            let (part, status) = text.trim_end().split_once(':')?;
            let (role, command) = self.parts.get(part.parse::<usize>().ok()?)?;
            Some((*role, command.as_str(), ExitStatus::from_raw(status.parse::<i32>().ok()? << 8)))
        };
        let several = self.parts.len() > 1;
        let (role, command) = self.first();
        several.then(left).flatten().unwrap_or((role, command, status))
    }
}
